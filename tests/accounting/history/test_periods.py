"""Ranges of days as a history's address asks for them."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounting.history.periods import MAX_DAY_STEPS, MAX_YEARS, Problem, ProblemKind, Step, neighbours, read_period
from accounting.history.texts import problem_text

TODAY = dt.date(2026, 11, 21)  # a Saturday


def day(text: str) -> dt.date:
    return dt.date.fromisoformat(text)


@pytest.mark.parametrize(
    ("params", "first", "last", "step"),
    [
        ({}, "2026-10-23", "2026-11-21", Step.DAY),  # 30 days with today: 9 in October, 21 in November
        ({"range": "7"}, "2026-11-15", "2026-11-21", Step.DAY),
        ({"range": "90"}, "2026-08-24", "2026-11-21", Step.DAY),  # 8 + 30 + 31 + 21 = 90
        ({"range": "year"}, "2026-01-01", "2026-11-21", Step.WEEK),
        ({"from": "2026-03-01", "to": "2026-03-31"}, "2026-03-01", "2026-03-31", Step.DAY),
        ({"from": "2026-03-01", "to": "2026-03-31", "step": "week"}, "2026-03-01", "2026-03-31", Step.WEEK),
        ({"from": "2020-01-01", "to": "2026-03-31"}, "2020-01-01", "2026-03-31", Step.MONTH),
        ({"from": "2026-11-01"}, "2026-11-01", "2026-11-21", Step.DAY),
        ({"to": "2026-06-30"}, "2026-06-01", "2026-06-30", Step.DAY),
        ({"from": "2026-11-01", "to": "2999-01-01"}, "2026-11-01", "2026-11-21", Step.DAY),
    ],
)
def test_an_address_says_its_range(params: dict[str, str], first: str, last: str, step: Step) -> None:
    period = read_period(params, TODAY)
    assert (period.first, period.last, period.step) == (day(first), day(last), step)
    assert period.problems == []


def test_all_begins_on_the_first_day_with_work() -> None:
    period = read_period({"range": "all"}, TODAY, earliest=day("2024-02-29"))
    # 997 days: more than 800, so months.
    assert (period.first, period.last, period.step) == (day("2024-02-29"), TODAY, Step.MONTH)


def test_all_of_an_empty_account_is_the_usual_range() -> None:
    assert read_period({"range": "all"}, TODAY).days == 30


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"from": "9999-99-99"}, "“9999-99-99” is not a date"),
        ({"to": "yesterday"}, "“yesterday” is not a date"),
        ({"from": "0000-01-01"}, "is not a date"),
        ({"from": "x" * 10_000}, "“xxxxxxxxxxxxxxxxxxxx” is not a date"),
        ({"range": "century"}, "This range is not known"),
        ({"from": "2027-01-01", "to": "2027-02-01"}, "in the future"),
        ({"from": "2027-01-01", "to": "2026-02-01"}, "in the future"),
    ],
)
def test_what_cannot_be_read_is_told_and_the_last_30_days_are_shown(params: dict[str, str], words: str) -> None:
    period = read_period(params, TODAY)
    sentence = problem_text(period.problems[0])
    assert words in sentence and len(sentence) < 150
    assert (period.days, period.last, period.preset) == (30, TODAY, "30")


def test_days_in_the_wrong_order_are_exchanged() -> None:
    period = read_period({"from": "2026-05-31", "to": "2026-05-01"}, TODAY)
    assert (period.first, period.last) == (day("2026-05-01"), day("2026-05-31"))
    assert "swapped" in problem_text(period.problems[0])


def test_a_range_of_more_than_50_years_is_clipped_with_a_notice() -> None:
    period = read_period({"from": "0001-01-01", "to": "2026-11-21"}, TODAY)
    assert period.first == day("1976-11-21")
    assert "50 years at most, so it begins on 21 Nov 1976" in problem_text(period.problems[0])


def test_single_days_of_a_long_range_become_weeks_with_a_notice() -> None:
    # 2025-11-20 to 2026-11-21 are 367 days, one more than fit.
    period = read_period({"from": "2025-11-20", "to": "2026-11-21", "step": "day"}, TODAY)
    assert period.step is Step.WEEK
    assert "shown by week" in problem_text(period.problems[0])


def test_an_unknown_step_is_told() -> None:
    period = read_period({"step": "decade"}, TODAY)
    assert (period.step, period.problems) == (Step.DAY, [Problem(ProblemKind.UNKNOWN_STEP)])
    assert problem_text(period.problems[0]) == "A history can be shown by day, week or month."


def test_weeks_begin_on_mondays_and_months_on_firsts() -> None:
    weeks = read_period({"from": "2026-03-05", "to": "2026-03-18", "step": "week"}, TODAY)
    assert list(weeks.starts()) == [day("2026-03-02"), day("2026-03-09"), day("2026-03-16")]
    months = read_period({"from": "2025-12-31", "to": "2026-02-01", "step": "month"}, TODAY)
    assert list(months.starts()) == [day("2025-12-01"), day("2026-01-01"), day("2026-02-01")]


def test_the_neighbours_have_the_same_length_and_none_is_all_in_the_future() -> None:
    period = read_period({"from": "2026-11-01", "to": "2026-11-10"}, TODAY)
    assert neighbours(period, TODAY) == (
        (day("2026-10-22"), day("2026-10-31")),
        (day("2026-11-11"), day("2026-11-20")),
    )
    assert neighbours(read_period({}, TODAY), TODAY)[1] is None


@given(
    params=st.dictionaries(
        st.sampled_from(["range", "from", "to", "step"]),
        st.one_of(st.text(max_size=12), st.dates().map(str), st.sampled_from(["all", "7", "day", "week", "month"])),
    ),
    today=st.dates(dt.date(2000, 1, 1), dt.date(9999, 12, 31)),
    earliest=st.none() | st.dates(),
)
def test_any_address_gives_a_range_that_a_page_can_show(
    params: dict[str, str], today: dt.date, earliest: dt.date | None
) -> None:
    period = read_period(params, today, earliest)
    assert period.first <= period.last <= today
    assert period.days <= MAX_YEARS * 366
    if period.last < dt.date(9999, 12, 1):
        assert 1 <= len(list(period.starts())) <= 12 * MAX_YEARS + 2
        neighbours(period, today)
    if period.step is Step.DAY:
        assert period.days <= MAX_DAY_STEPS
