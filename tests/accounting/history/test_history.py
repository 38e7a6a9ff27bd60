"""The numbers of the history page, from days as the ledger leaves them."""

from __future__ import annotations

import datetime as dt

import pytest

from accounting.engine.states import DayFlag
from accounting.history.periods import read_period
from accounting.history.reads import By, History, Show, read_history
from accounting.history.sums import read_first_day
from accounting.models import Day
from portal.models import Host, User
from tests.support.accounting_factories import credit, make_host, make_project

pytestmark = pytest.mark.django_db

TODAY = dt.date(2026, 3, 10)  # a Tuesday
CREDIT, SEC = 1_000_000, 1_000_000


def history(
    user: User,
    by: By = By.PROJECT,
    show: Show = Show.CREDIT,
    *,
    first: str = "2026-03-01",
    last: str = "2026-03-10",
    step: str = "",
) -> History:
    period = read_period({"from": first, "to": last, "step": step}, TODAY)
    return read_history(user, period, show, by, TODAY)


def layers(hist: History) -> dict[str, int]:
    return {layer.name: layer.total for layer in hist.series}


@pytest.fixture
def days(studio: Host) -> Host:
    """Three days at two projects: one credit and 100 s of CPU, or two credits and 50 s of GPU, in each row."""
    alpha, beta = make_project("Alpha", colour=3), make_project("Beta", colour=5)
    credit(studio, alpha, "2026-03-02", (1 * CREDIT, 0, 100 * SEC, 0, 4, 1))
    credit(studio, beta, "2026-03-02", (0, 2 * CREDIT, 0, 50 * SEC, 2, 0))
    credit(studio, alpha, "2026-03-09", (1 * CREDIT, 0, 100 * SEC, 0, 4, 1), flags=DayFlag.CAPPED)
    credit(studio, beta, "2026-03-10", (0, 2 * CREDIT, 0, 50 * SEC, 2, 0))
    return studio


def test_credit_by_project_day_by_day(days: Host) -> None:
    hist = history(days.owner)
    assert layers(hist) == {"Beta": 4 * CREDIT, "Alpha": 2 * CREDIT}
    assert [layer.colour for layer in hist.series] == ["5", "3"]
    assert [line.title for line in hist.lines] == [f"{day} Mar 2026" for day in range(1, 11)]
    # Beta is first, as the larger; day 2 has both.
    assert hist.lines[1].parts == [2 * CREDIT, 1 * CREDIT]
    assert hist.lines[2].parts == [0, 0]
    assert hist.total == 6 * CREDIT
    assert hist.mean == 6 * CREDIT / 10
    assert hist.best is not None and (hist.best.title, hist.best.total) == ("2 Mar 2026", 3 * CREDIT)


def test_all_six_amounts_stand_beside_the_chosen_quantity(days: Host) -> None:
    hist = history(days.owner)
    assert hist.totals == (2 * CREDIT, 4 * CREDIT, 200 * SEC, 100 * SEC, 12, 2)
    assert hist.lines[1].amounts == (1 * CREDIT, 2 * CREDIT, 100 * SEC, 50 * SEC, 6, 1)


def test_run_time_is_cpu_and_gpu_time_and_jobs_are_both_outcomes(days: Host) -> None:
    assert layers(history(days.owner, By.PROCESSOR, Show.CREDIT)) == {"CPU": 2 * CREDIT, "GPU": 4 * CREDIT}
    assert layers(history(days.owner, By.PROCESSOR, Show.TIME)) == {"CPU": 200 * SEC, "GPU": 100 * SEC}
    assert layers(history(days.owner, By.PROCESSOR, Show.JOBS)) == {"Succeeded": 12, "Failed": 2}
    # Alpha 2 times 5 jobs, Beta 2 times 2.
    assert layers(history(days.owner, By.PROJECT, Show.JOBS)) == {"Alpha": 10, "Beta": 4}


def test_computers_are_told_apart(days: Host) -> None:
    attic = make_host(days.owner, "attic")
    credit(attic, make_project("Gamma"), "2026-03-03", (5 * CREDIT, 0, 0, 0, 0, 0))
    hist = history(days.owner, By.COMPUTER)
    assert layers(hist) == {"studio": 6 * CREDIT, "attic": 5 * CREDIT}


def test_weeks_and_months_add_up_their_days(days: Host) -> None:
    weeks = history(days.owner, step="week")
    # Monday 2 March begins a week; 1 March is the end of the one before, 9 and 10 March begin the next.
    assert [(line.title, line.total) for line in weeks.lines] == [
        ("1 Mar 2026", 0),
        ("2 Mar 2026 to 8 Mar 2026", 3 * CREDIT),
        ("9 Mar 2026 to 10 Mar 2026", 3 * CREDIT),
    ]
    months = history(days.owner, step="month")
    assert [(line.title, line.total) for line in months.lines] == [("March 2026", 6 * CREDIT)]


def test_days_outside_the_range_do_not_count(days: Host) -> None:
    hist = history(days.owner, first="2026-03-03", last="2026-03-09")
    assert hist.total == 1 * CREDIT
    weeks = history(days.owner, first="2026-03-03", last="2026-03-09", step="week")
    assert [line.total for line in weeks.lines] == [0, 1 * CREDIT]


def test_today_is_not_over_yet(days: Host) -> None:
    assert [line.title for line in history(days.owner).lines if line.is_partial] == ["10 Mar 2026"]
    assert not any(line.is_partial for line in history(days.owner, last="2026-03-09").lines)


def test_a_capped_day_is_marked_and_explained(days: Host) -> None:
    hist = history(days.owner)
    assert hist.marked == [8]
    assert hist.lines[8].notes == [
        "more was reported than the computer could have done; the rest is waiting, or was left out"
    ]


def test_what_is_no_fault_is_explained_but_not_marked(studio: Host) -> None:
    credit(studio, make_project(), "2026-03-04", (1, 0, 0, 0, 0, 0), flags=DayFlag.BASELINE | DayFlag.PENDING_PAID)
    hist = history(studio.owner)
    assert hist.marked == []
    assert len(hist.lines[3].notes) == 2


def test_weeks_carry_no_marks_but_keep_the_notes(days: Host) -> None:
    hist = history(days.owner, step="week")
    assert hist.marked == []
    assert hist.lines[2].notes != []


def test_more_than_eight_projects_are_summed_up_as_others(studio: Host) -> None:
    # 1 + 2 + … + 10 = 55 credits; the eight largest, 3 to 10, make 52.
    for number in range(1, 11):
        project = make_project(f"P{number}", colour=number % 8)
        credit(studio, project, "2026-03-05", (number * CREDIT, 0, 0, 0, 0, 0))
    hist = history(studio.owner)
    assert [layer.name for layer in hist.series] == ["P10", "P9", "P8", "P7", "P6", "P5", "P4", "P3", "2 others"]
    assert hist.series[-1].total == 3 * CREDIT
    assert sum(layer.total for layer in hist.series) == hist.total == 55 * CREDIT
    # P10 and P9 keep their colours; no two layers share one.
    assert [layer.colour for layer in hist.series[:2]] == ["2", "1"]
    assert len({layer.colour for layer in hist.series}) == 9


def test_another_users_days_are_never_counted(days: Host, bob: User) -> None:
    credit(make_host(bob, "bobs"), make_project("His"), "2026-03-05", (99 * CREDIT, 0, 0, 0, 0, 0))
    assert history(days.owner).total == 6 * CREDIT
    assert layers(history(bob)) == {"His": 99 * CREDIT}


def test_an_empty_range_is_empty(days: Host) -> None:
    hist = history(days.owner, first="2026-02-01", last="2026-02-10")
    assert hist.is_empty and hist.best is None and hist.series == []
    assert len(hist.lines) == 10


def test_run_time_without_a_finished_job_is_not_empty(studio: Host) -> None:
    credit(studio, make_project(), "2026-03-05", (0, 0, 30 * SEC, 0, 0, 0))
    hist = history(studio.owner, show=Show.JOBS)
    assert hist.total == 0 and not hist.is_empty


def test_the_first_day_is_found_years_back(studio: Host) -> None:
    assert read_first_day(studio.owner, TODAY) is None
    credit(studio, make_project(), "2019-07-04", (1, 0, 0, 0, 0, 0))
    credit(studio, make_project(), "2026-03-05", (1, 0, 0, 0, 0, 0))
    assert read_first_day(studio.owner, TODAY) == dt.date(2019, 7, 4)


def test_only_the_months_of_the_range_are_read(days: Host) -> None:
    for month in range(1, 13):
        credit(days, make_project(), f"2025-{month:02}-15", (1, 0, 0, 0, 0, 0))
    plan = Day.objects.filter(user=days.owner, day__range=("2026-03-01", "2026-03-10")).explain()
    assert "accounting_day_2026_03" in plan
    assert "accounting_day_2025" not in plan
