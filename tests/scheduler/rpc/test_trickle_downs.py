"""Messages to running jobs reach their computer whatever is lost on the way, and progress extends a deadline."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable

import pytest
from django.contrib.auth.models import Permission
from pytest_django import Settings

from credit.models import App, Batch, Result
from portal.models import User
from scheduler.engine import trickle_downs
from scheduler.engine.trickle_downs import MAX_PER_REPLY, MAX_WAITING, Message, RunningJob, TrickleDownPlan
from scheduler.models import TrickleDown
from scheduler.programs import catalogue
from scheduler.submission.job_messages import SendingError, send_down
from tests.support.credit_factories import make_app, make_result, make_version, make_workunit
from tests.support.rest_api import bearer, call, errors_of
from tests.support.scheduler_clients import Computer, computer_of, result_xml
from tools.benchmarks.harness.statements import statements

pytestmark = pytest.mark.django_db

NOON = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC)


@pytest.fixture
def app(db: None) -> App:
    app = make_app()
    make_version(app)
    return app


@pytest.fixture
def computer(app: App, alice: User) -> Computer:
    """A computer that got a job at noon."""
    make_result(make_workunit(app, fpops_est=7.2e12, output_files=[], delay_bound_secs=86_400))
    computer = computer_of(alice)
    computer.ask(1, now=NOON)
    return computer


@pytest.fixture
def result(computer: Computer) -> Result:
    return Result.objects.get()


def trickle_up(result: Result) -> str:
    return (
        f"<msg_from_host><result_name>{result.name}</result_name><time>1</time><variety>v</variety>\n"
        "<text>here</text></msg_from_host>\n"
    )


def at(hours: float) -> dt.datetime:
    return NOON + dt.timedelta(hours=hours)


class Running:
    """The client's side of a job: the deadline that it has, and the texts that its program found by their numbers."""

    def __init__(self, computer: Computer, result: Result) -> None:
        assert result.deadline_at is not None
        self.computer, self.name = computer, result.name
        self.deadline = round(result.deadline_at.timestamp())
        self.files: dict[str, str] = {}
        self.is_asked = False

    def ask(self, hours: float, *, extra: str = "", is_lost: bool = False) -> str:
        # As clients do, only if the last reply asked for it
        named = (
            ""
            if not self.is_asked
            else (
                f"<in_progress_results><ip_result><name>{self.name}</name>"
                f"<report_deadline>{self.deadline}</report_deadline></ip_result></in_progress_results>"
            )
        )
        catalogue.forget()  # as it would be after hours
        reply = self.computer.ask(extra=extra + named, now=at(hours))
        if not is_lost:
            messages_sent = re.findall(
                r"<trickle_down>\n<result_name>.*\n<time>(\d+)</time>\n(.*)\n</trickle_down>", reply
            )
            self.files.update(messages_sent)
            self.is_asked = "<send_full_workload/>" in reply
            for deadline in re.findall(rf"<name>{self.name}</name>\n<report_deadline>(\d+)<", reply):
                self.deadline = int(deadline)
        return reply


def test_a_message_whose_reply_is_lost_comes_again_and_counts_once(computer: Computer, result: Result) -> None:
    running = Running(computer, result)
    first_deadline = running.deadline
    running.ask(1, extra=trickle_up(result))
    sent = send_down(result.pk, "go on", at(1))
    assert send_down(result.pk, "go on", at(1)) == sent
    for hours in (2, 3):
        assert "<trickle_down>" in running.ask(hours, is_lost=True)
    sent.refresh_from_db()
    assert sent.told_deadline_at is not None and sent.acknowledged_at is None
    running.ask(4)
    assert running.files == {str(sent.pk): "go on"}
    assert running.deadline == first_deadline + 1
    for hours in (5, 6):
        assert "<trickle_down>" not in running.ask(hours)
    sent.refresh_from_db()
    # By the first request that showed it; the next ones change nothing.
    assert sent.acknowledged_at == at(5)
    assert running.deadline == first_deadline + 1


def test_a_message_waits_for_the_jobs_own_first_one(computer: Computer, result: Result) -> None:
    running = Running(computer, result)
    send_down(result.pk, "go on", NOON)
    assert "<trickle_down>" not in running.ask(1)
    # Asked for at once when a program sends one
    assert "<trickle_down>" in running.ask(2, extra=trickle_up(result))


def test_messages_of_a_job_that_is_over_are_dropped(computer: Computer, result: Result) -> None:
    running = Running(computer, result)
    running.ask(1, extra=trickle_up(result))
    send_down(result.pk, "go on", at(1))
    assert "<trickle_down>" not in computer.ask(results=result_xml(result.name, state=3, exit_status=1), now=at(2))
    assert "<trickle_down>" not in computer.ask(now=at(3))
    with pytest.raises(SendingError, match="not in progress"):
        send_down(result.pk, "too late", at(3))


@pytest.mark.parametrize("text", ["", "</trickle_down>", "x" * 65_537])
def test_a_text_that_no_client_could_read_is_refused(result: Result, text: str) -> None:
    with pytest.raises(SendingError, match="without <trickle_down>"):
        send_down(result.pk, text, NOON)


def test_few_messages_wait_at_a_time(result: Result) -> None:
    for number in range(MAX_WAITING):
        send_down(result.pk, f"number {number}", NOON)
    with pytest.raises(SendingError, match="already waiting"):
        send_down(result.pk, "one more", NOON)


def test_of_thousands_of_messages_a_request_reads_a_few_and_those_that_can_be_told_first(
    app: App, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(7):
        make_result(make_workunit(app, fpops_est=7.2e12, output_files=[], delay_bound_secs=86_400))
    computer = computer_of(alice, ncpus=8)
    computer.ask(0, 7, now=NOON)
    *silent, begun = Result.objects.order_by("pk")
    for result in silent:
        for number in range(MAX_WAITING):
            send_down(result.pk, f"number {number}", NOON)
    computer.ask(extra=trickle_up(begun), now=at(1))
    send_down(begun.pk, "go on", at(1))
    read: list[int] = []
    plan_messages = trickle_downs.plan_messages

    def counts(jobs: Iterable[RunningJob], messages: list[Message]) -> TrickleDownPlan:
        read.append(len(messages))
        return plan_messages(jobs, messages)

    monkeypatch.setattr(trickle_downs, "plan_messages", counts)
    catalogue.forget()
    reply = computer.ask(now=at(2))
    assert read == [5 * MAX_PER_REPLY]
    assert re.findall("<trickle_down>\n<result_name>(.*)<", reply) == [begun.name]


def test_strangers_computers_see_no_message_and_acknowledge_none(computer: Computer, result: Result, bob: User) -> None:
    computer.ask(extra=trickle_up(result), now=at(1))
    send_down(result.pk, "go on", at(1))
    stranger = Running(computer_of(bob), result)
    stranger.deadline = 999_999_999_999
    assert "<trickle_down>" not in stranger.ask(2)
    assert TrickleDown.objects.filter(acknowledged_at=None).count() == 1


def test_progress_extends_a_jobs_deadline_up_to_a_limit(computer: Computer, result: Result, app: App) -> None:
    App.objects.update(deadline_extension_secs=36 * 3600, max_extended_secs=48 * 3600)
    catalogue.forget()
    running = Running(computer, result)

    def deadline_hours() -> float:
        result.refresh_from_db()
        assert result.deadline_at is not None
        assert running.deadline == round(result.deadline_at.timestamp())
        return (result.deadline_at - NOON).total_seconds() / 3600

    running.ask(10)
    assert deadline_hours() == 24
    running.ask(10, extra=trickle_up(result))
    assert deadline_hours() == 46
    # The client missed that reply's successor, and names the former deadline: it is told again.
    running.ask(20, extra=trickle_up(result), is_lost=True)
    running.ask(21)
    assert deadline_hours() == 48
    running.ask(47, extra=trickle_up(result))
    assert deadline_hours() == 48


def test_a_job_of_an_app_without_a_limit_has_a_last_deadline_too(computer: Computer, result: Result, app: App) -> None:
    """The computer has a day for the job, so it gets ten days at most; else it could keep it for ever by messages."""
    App.objects.update(deadline_extension_secs=20 * 3600)
    catalogue.forget()
    running = Running(computer, result)
    for hours in range(10, 239, 19):
        running.ask(hours, extra=trickle_up(result))
    result.refresh_from_db()
    assert running.deadline == at(240).timestamp()
    assert result.deadline_at == at(240)


def test_a_client_is_told_deadlines_without_the_projects_grace(app: App, alice: User, settings: Settings) -> None:
    settings.REPORT_GRACE_SECS = 3600
    App.objects.update(deadline_extension_secs=36 * 3600, max_extended_secs=40 * 3600)
    catalogue.forget()
    for _ in range(2):
        make_result(make_workunit(app, fpops_est=7.2e12, output_files=[], delay_bound_secs=86_400))
    computer = computer_of(alice)
    computer.ask(2, 2, now=NOON)
    result, other = Result.objects.order_by("pk")
    running = Running(computer, result)
    running.deadline -= 3600
    send_down(result.pk, "go on", NOON)
    running.ask(1, extra=trickle_up(result))
    running.ask(2)
    result.refresh_from_db()
    # 36 hours after the message, of which the client knows, and an hour more
    assert (running.deadline, result.deadline_at) == (at(37).timestamp(), at(38))
    assert TrickleDown.objects.get().acknowledged_at == at(2)
    running.ask(10, extra=trickle_up(result))
    running.ask(11)
    result.refresh_from_db()
    assert (running.deadline, result.deadline_at) == (at(40).timestamp(), at(41))
    named = (
        f"<ip_result><name>{other.name}</name><report_deadline>{at(24).timestamp():.0f}</report_deadline></ip_result>"
    )
    assert f"<name>{other.name}</name>" not in computer.ask(
        extra=f"<in_progress_results>{named}</in_progress_results>", now=at(12)
    )


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("filled_once")
def test_a_message_costs_no_statement(app: App, alice: User) -> None:
    make_result(make_workunit(app, output_files=[]))
    computer = computer_of(alice)
    computer.ask(1)
    result = Result.objects.get()
    computer.ask(extra=trickle_up(result))
    computer.ask()
    send_down(result.pk, "go on", NOON)
    catalogue.forget()
    catalogue.cache.current()
    # read; lock the computer, write
    assert statements(lambda: computer.ask()) == 3
    assert TrickleDown.objects.get().told_deadline_at is not None


def test_a_batches_owner_sends_messages_by_the_api(result: Result, app: App, alice: User, bob: User) -> None:
    for user in (alice, bob):
        user.user_permissions.add(Permission.objects.get(codename="add_batch"))
    batch = Batch.objects.create(app=app, owner=alice)
    result.workunit.batch = batch
    result.workunit.save()
    address = f"/api/v1/batches/{batch.pk}/messages/"
    sent = call("POST", address, bearer(alice), {"task": result.name, "text": "go on\n"}, 201)
    assert (sent["task"], sent["acknowledged_at"]) == (result.name, None)
    assert call("GET", address, bearer(alice))["results"] == [sent]
    call("POST", address, bearer(bob), {"task": result.name, "text": "stop"}, 404)
    for body, field in (
        ({"task": "other", "text": "x"}, "task"),
        ({"task": result.name, "text": "<time>"}, "text"),
    ):
        assert list(errors_of(call("POST", address, bearer(alice), body, 400))) == [field]
