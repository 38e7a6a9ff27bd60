"""Jobs that a computer returns undone: above a share of the day's jobs, they count again in its daily quota."""

from __future__ import annotations

import datetime as dt

import pytest
from pytest_django import Settings

from credit.models import App
from portal.models import User
from scheduler.models import HostRecord
from tests.support.credit_factories import NOON, make_app, make_result, make_version, make_workunit
from tests.support.scheduler_clients import Computer, computer_of, messages, result_xml

pytestmark = pytest.mark.django_db
ABORTED = {"state": 6, "exit_status": -203}
NOT_DOWNLOADED = {"state": 1, "exit_status": -186}


@pytest.fixture
def app(db: None) -> App:
    app = make_app(max_jobs_per_day_init=30)
    make_version(app)
    for _ in range(60):
        make_result(make_workunit(app, fpops_est=7.2e10, output_files=[], delay_bound_secs=86_400))
    return app


@pytest.fixture
def computer(app: App, alice: User) -> Computer:
    """A computer with one processor, so 30 jobs a day, of which it has 20."""
    computer = computer_of(alice, ncpus=1)
    computer.ask(0, 20, now=NOON)
    assert len(computer.jobs) == 20
    return computer


def give_back(computer: Computer, njobs: int, fields: dict[str, int], now: dt.datetime = NOON) -> str:
    reports = "".join(result_xml(name, **fields) for name in computer.jobs[:njobs])
    computer.ask(results=reports, now=now + dt.timedelta(minutes=1))
    before = len(computer.jobs)
    reply = computer.ask(0, 20, now=now + dt.timedelta(minutes=2))
    return (
        f"{len(computer.jobs) - before} more, {HostRecord.objects.get().jobs_of_day[0][3]} counted; {messages(reply)}"
    )


@pytest.mark.parametrize("fields", [ABORTED, NOT_DOWNLOADED], ids=["aborted", "not downloaded"])
@pytest.mark.parametrize(
    ("share", "njobs", "expected"),
    [
        # A fifth of 20 costs nothing: 10 are left of 30, and room for 4 of 20 at once.
        (0.2, 4, "4 more, 24 counted"),
        # The fifth one is more than 0.2 × 20, so 21 count; the sixth more than 0.2 × 21, so 22; 8 are left.
        (0.2, 6, "6 more, 28 counted"),
        # 20 + 16 are more than the 30 of the day.
        (0.2, 20, "0 more, 36 counted; ['No tasks sent: this computer has reached its daily limit"),
        (0.5, 20, "0 more, 30 counted; ['No tasks sent: this computer has reached its daily limit"),
        (1.0, 20, "10 more, 30 counted"),
        (0.0, 1, "1 more, 22 counted"),
    ],
)
def test_more_than_a_share_counts_like_further_jobs(
    computer: Computer, settings: Settings, fields: dict[str, int], share: float, njobs: int, expected: str
) -> None:
    settings.MAX_UNDONE_SHARE = share
    assert give_back(computer, njobs, fields).startswith(expected)


def test_what_fails_while_it_runs_costs_quota_as_before_and_counts_once(computer: Computer) -> None:
    # 30 - 5 a day, of which 20 are used.
    assert give_back(computer, 5, {"state": 3, "exit_status": 1}).startswith("5 more, 25 counted")


def test_jobs_of_yesterday_count_for_the_day_that_they_are_given_back_on(computer: Computer) -> None:
    # None was sent on that day, so each of the 20 counts: 10 of 30 are left.
    assert give_back(computer, 20, ABORTED, NOON + dt.timedelta(hours=13)).startswith("10 more, 30 counted")


def test_lost_jobs_count_too(computer: Computer) -> None:
    HostRecord.objects.update(named_jobs_until=None)
    computer.jobs = []
    # Nothing can be sent again to a client that wants no jobs, so all are given up.
    computer.ask(extra="<dont_send_work/>", now=NOON + dt.timedelta(minutes=1))
    assert HostRecord.objects.get().jobs_of_day[0][3:] == [36, 20]
