"""What the values of a figure say: rates, queues that grow, limits, tasks that did not run."""

from __future__ import annotations

import pytest

from portal.dashboard.rules import Course, above, below, combine, first_of, grows, rates
from portal.dashboard.texts import span, task_trouble


def test_a_counter_is_shown_as_its_growth() -> None:
    # 60 in ten minutes are 6 a minute; then 0.
    assert rates([(0, 100), (600, 160), (1200, 160)], 60) == [(600, 6.0), (1200, 0.0)]


def test_a_counter_that_begins_anew_is_no_negative_rate() -> None:
    assert rates([(0, 100), (600, 5), (1200, 65)], 60) == [(1200, 6.0)]


def test_a_limit_names_the_series_that_are_over_it() -> None:
    look = above(10, "Too much: {labels}.")
    assert look(Course([(0, 30)], {"alpine": 20, "birch": 10, "cedar": 11})) == "Too much: alpine, cedar."
    assert look(Course([(0, 30)], {"alpine": 10})) == ""
    assert below(1, "None in {labels}.")(Course([(0, 1)], {"celery": 1, "requested": 0})) == "None in requested."


def test_names_with_braces_are_only_names() -> None:
    assert above(1, "Too much: {labels}.")(Course([(0, 2)], {"{0}": 2})) == "Too much: {0}."


@pytest.mark.parametrize(
    ("values", "is_growing"),
    [
        ([100, 150, 200, 250, 300, 350], True),
        # It became shorter meanwhile
        ([100, 150, 140, 250, 300, 350], False),
        # Not twice as long
        ([300, 310, 320, 330, 340, 350], False),
        # A short queue is none to worry about
        ([1, 2, 3, 4, 5, 50], False),
        ([0, 0, 0, 100, 200, 300], True),
        ([100, 300], False),
    ],
)
def test_a_queue_grows_when_it_only_gets_longer(values: list[float], is_growing: bool) -> None:
    points = [(hour * 3600.0, value) for hour, value in enumerate(values)]
    assert bool(grows("It grows.")(Course(points, {"": values[-1]}))) == is_growing


def test_the_first_trouble_is_told() -> None:
    look = first_of(above(10, "a"), above(5, "b"))
    assert look(Course([(0, 6)], {"": 6})) == "b"
    assert look(Course([(0, 60)], {"": 60})) == "a"
    assert look(Course([(0, 1)], {"": 1})) == ""


def test_a_series_counts_at_the_times_when_it_has_a_value() -> None:
    assert combine({"a": [(0, 1), (10, 2)], "b": [(0, 10), (5, 3)]}, sum) == [(0, 11), (5, 3), (10, 2)]


def test_a_task_is_late_after_three_of_its_times_and_a_quarter_of_an_hour() -> None:
    def trouble(waiting_secs: float, has_run: bool = True, failed: bool = False) -> str:
        return task_trouble(600, waiting_secs, has_run, failed, "OSError: disk full" if failed else "", "feed")

    # 3 × 600 + 900 = 2700
    assert trouble(2700) == ""
    assert trouble(7200) == "The task “feed” has not succeeded for 2 hours; it is due every 10 minutes."
    assert trouble(7200, has_run=False) == "The task “feed” has never succeeded; it is due every 10 minutes."
    assert trouble(60, failed=True) == "The task “feed” failed when it last ran: OSError: disk full."


@pytest.mark.parametrize(
    ("secs", "text"),
    [(5, "5 seconds"), (60, "a minute"), (600, "10 minutes"), (5400, "2 hours"), (86_400, "24 hours"), (2e5, "2 days")],
)
def test_spans_read_as_people_say_them(secs: float, text: str) -> None:
    assert span(secs) == text
