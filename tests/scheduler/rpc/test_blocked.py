"""Computers that get no work: blocked by operators, or with an unsupported version of BOINC; the grace period."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from credit.models import App, AppVersion, Outcome, Result, ServerState
from portal.models import Change, Host, User
from scheduler.lifecycle import transitioner
from scheduler.models import BetaTester, WorkBlock
from scheduler.programs import catalogue
from tests.support.credit_factories import make_app, make_result, make_version, make_workunit
from tests.support.scheduler_clients import Computer, computer_of, messages, result_xml, value

pytestmark = pytest.mark.django_db
REASON = "its results differ from all others; test its memory, and write to us"


@pytest.fixture
def app(db: None) -> App:
    app = make_app(max_jobs_per_day_init=1000)
    make_version(app)
    return app


@pytest.fixture
def computer(app: App, alice: User) -> Computer:
    """One that has a job, with others waiting."""
    for _ in range(5):
        make_result(make_workunit(app, output_files=[], min_quorum=1, target_nresults=1))
    computer = computer_of(alice)
    computer.ask(0, 1)
    assert len(computer.jobs) == 1
    return computer


def block(computer: Computer, *, whole_account: bool = False) -> WorkBlock:
    host = Host.objects.get(pk=computer.hostid)
    who = {"user": host.owner} if whole_account else {"host": host}
    made = WorkBlock.objects.create(reason=REASON, **who)
    catalogue.forget()
    return made


@pytest.mark.parametrize("whole_account", [False, True])
def test_a_blocked_computer_gets_nothing_and_its_owner_is_told_why(computer: Computer, whole_account: bool) -> None:
    made = block(computer, whole_account=whole_account)
    reply = computer.ask(0, 1)
    assert len(computer.jobs) == 1
    [sentence] = messages(reply)
    assert sentence == (
        f"The operators of this project send this computer no new tasks: {REASON}. Tasks that it has can be finished "
        "and reported, and are credited."
    )
    assert '<message priority="notice">' in reply
    made.delete()
    catalogue.forget()
    computer.ask(0, 1)
    assert len(computer.jobs) == 2


def test_it_reports_what_it_has_and_loses_nothing(computer: Computer) -> None:
    [job] = computer.jobs
    block(computer)
    # The reply with its job was lost: the same job comes again.
    computer.jobs = []
    computer.ask(0, 1)
    assert computer.jobs == [job]
    reply = computer.ask(0, 1, results=result_xml(job))
    assert value(reply, "name") == job
    result = Result.objects.get(name=job)
    assert (result.server_state, result.outcome) == (ServerState.OVER, Outcome.SUCCESS)
    assert computer.jobs == []


def test_other_computers_of_its_owner_work_on(computer: Computer, alice: User) -> None:
    block(computer)
    other = computer_of(alice)
    other.ask(0, 1)
    assert len(other.jobs) == 1


def test_the_owner_reads_the_reason_on_the_computers_page(computer: Computer, alice: User, client: Client) -> None:
    block(computer)
    client.force_login(alice)
    assert REASON in client.get(f"/computers/{computer.hostid}/").content.decode()


def test_operators_block_in_the_admin_which_is_recorded(computer: Computer, operator: User, client: Client) -> None:
    client.force_login(operator)
    address = "/admin/scheduler/workblock/add/"
    both = client.post(address, {"host": computer.hostid, "user": operator.pk, "reason": REASON})
    assert "Choose a computer or a volunteer, not both." in both.content.decode()
    assert client.post(address, {"host": computer.hostid, "user": "", "reason": REASON}).status_code == 302
    assert WorkBlock.objects.get().host_id == computer.hostid
    [change] = Change.objects.filter(content_type__model="workblock")
    assert change.actor == operator


# --- versions of BOINC ----------------------------------------------------------------------------------------------
# The requests say 7.20.5.


def test_a_client_that_is_too_old_gets_nothing_and_its_owner_what_to_do(computer: Computer, settings: Settings) -> None:
    settings.MIN_CLIENT_VERSION = "8.0"
    reply = computer.ask(0, 1, results=result_xml(computer.jobs[0]))
    assert computer.jobs == []
    [sentence] = messages(reply)
    assert "BOINC 7.20.5 is too old for this project, which needs 8.0.0 or newer" in sentence
    assert "https://boinc.berkeley.edu/download.php" in sentence
    assert Result.objects.filter(outcome=Outcome.SUCCESS).count() == 1


def test_until_the_day_it_gets_work_and_a_notice(computer: Computer, settings: Settings) -> None:
    settings.MIN_CLIENT_VERSION, settings.MIN_CLIENT_VERSION_FROM = "8.0", timezone.now() + dt.timedelta(days=2)
    reply = computer.ask(0, 1)
    assert len(computer.jobs) == 2
    assert "this project needs BOINC 8.0.0 or newer; this computer has 7.20.5" in messages(reply)[0]


def test_a_client_that_is_too_new_is_told_so(computer: Computer, settings: Settings) -> None:
    settings.MAX_CLIENT_VERSION = "7.16.20"
    assert "BOINC 7.20.5 is newer than this project supports so far. Use 7.16.20" in messages(computer.ask(0, 1))[0]


@pytest.mark.parametrize(
    ("limits", "numbers"),
    [
        ({"min_client_version": 72_006}, [100]),
        ({"max_client_version": 72_004}, [100]),
        ({"min_client_version": 72_005, "max_client_version": 72_005}, [101]),
    ],
)
def test_a_client_gets_the_newest_version_that_allows_it(
    app: App, alice: User, limits: dict[str, Any], numbers: list[int]
) -> None:
    make_version(app, 101, **limits)
    make_result(make_workunit(app, output_files=[]))
    computer_of(alice).ask(0, 1)
    sent = Result.objects.exclude(app_version=None)
    assert list(sent.values_list("app_version__version_num", flat=True)) == numbers


def test_if_no_version_allows_it_it_is_told_that_another_boinc_is_needed(app: App, alice: User) -> None:
    AppVersion.objects.update(min_client_version=80_000)
    make_result(make_workunit(app, output_files=[]))
    assert messages(computer_of(alice).ask(0, 1)) == ["No tasks sent: the applications need another version of BOINC"]


def test_an_app_for_testers_sends_to_nobody_else(app: App, alice: User) -> None:
    App.objects.update(is_beta=True)
    make_result(make_workunit(app, output_files=[]))
    computer = computer_of(alice)
    computer.ask(0, 1)
    assert computer.jobs == []
    BetaTester.objects.create(user=alice)
    catalogue.forget()
    computer.ask(0, 1)
    assert len(computer.jobs) == 1


# --- grace ------------------------------------------------------------------------------------------------------------


def test_a_job_is_waited_for_longer_than_its_client_is_told(app: App, alice: User, settings: Settings) -> None:
    settings.REPORT_GRACE_SECS = 3600
    now = timezone.now().replace(microsecond=0)
    make_result(make_workunit(app, output_files=[], delay_bound_secs=86_400))
    computer = computer_of(alice)
    reply = computer.ask(0, 1, now=now)
    told_at = now.timestamp() + 86_400
    assert float(value(reply, "report_deadline")) == told_at
    result = Result.objects.get(name=computer.jobs[0])
    assert result.deadline_at is not None and result.deadline_at.timestamp() == told_at + 3600
    transitioner.run(now + dt.timedelta(seconds=86_400 + 3599))
    result.refresh_from_db()
    assert result.server_state == ServerState.IN_PROGRESS
    # A lost reply tells the same deadline again.
    computer.jobs = []
    assert float(value(computer.ask(0, 1, now=now + dt.timedelta(minutes=5)), "report_deadline")) == told_at
