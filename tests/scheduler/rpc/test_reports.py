"""Reported results: what counts as a success, what is recorded, the effect on the computer's record, and repetition."""

from __future__ import annotations

import datetime as dt
from contextlib import closing
from time import monotonic
from typing import Any

import pytest
from celery.exceptions import SoftTimeLimitExceeded
from django.conf import settings
from django.db import OperationalError, connection
from django.utils import timezone
from pytest_django import Settings

from credit.models import App, HostAppVersion, HostCredit, Outcome, Result, ServerState, UserCredit, Workunit
from portal.models import User
from scheduler import tasks
from scheduler.models import Trickle, Upload
from scheduler.rpc import trickles
from scheduler.rpc.trickles import TrickleError, handle_waiting
from tests.support.credit_factories import make_app, make_result, make_version, make_workunit
from tests.support.scheduler_clients import Computer, computer_of, names, post, result_xml

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("registered_functions")]

NOON = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC)
MD5 = "9" * 32


@pytest.fixture
def app(db: None) -> App:
    app = make_app()
    make_version(app)
    return app


@pytest.fixture
def computer(app: App, alice: User) -> Computer:
    """A computer that got a job at noon, with one output file to deliver."""
    outputs = [{"open_name": "out", "max_nbytes": 1000}]
    make_result(make_workunit(app, fpops_est=7.2e12, output_files=outputs, delay_bound_secs=86_400))
    computer = computer_of(alice)
    computer.ask(1, now=NOON)
    return computer


@pytest.fixture
def result(computer: Computer) -> Result:
    return Result.objects.get()


def upload(result: Result, md5: str = MD5, *, complete: bool = True) -> None:
    name = f"{result.name}_0"
    completed_at = NOON if complete else None
    Upload.objects.create(
        result=result, name=name, path=f"outputs/{name}", nbytes=17, md5=md5, completed_at=completed_at
    )


def report(computer: Computer, result: Result, *, hours: float = 1, **fields: Any) -> Result:
    reply = computer.ask(results=result_xml(result.name, **fields), now=NOON + dt.timedelta(hours=hours))
    assert names(reply, "result_ack") == [result.name]
    result.refresh_from_db()
    return result


def test_a_finished_job_with_its_files_is_a_success(computer: Computer, result: Result) -> None:
    upload(result)
    report(computer, result, final_elapsed_time=3000.5, final_cpu_time=2900, files={f"{result.name}_0": MD5},
           fpops_cumulative=7e12, fpops_per_cpu_sec=2e9, final_peak_working_set_size=1_683_456)  # fmt: skip
    assert (result.server_state, result.outcome) == (ServerState.OVER, Outcome.SUCCESS)
    assert (result.elapsed_secs, result.cpu_secs, result.fpops_cumulative) == (3000.5, 2900, 7e12)
    assert (result.fpops_per_cpu_sec, result.peak_working_set_bytes) == (2e9, 1_683_456)
    assert result.received_at == NOON + dt.timedelta(hours=1)
    assert [file["md5"] for file in result.outputs] == [MD5]
    assert result.output_digest is not None
    assert result.report_faults == []
    assert Workunit.objects.get().transition_at == NOON + dt.timedelta(hours=1)


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({"files": {}}, None),
        # The client knows another content than what is here.
        ({"files": {"FILE": "8" * 32}}, "FILE has a different MD5 on the computer than here"),
        # As a server called it that the project moved from
        ({"files": {"TASK_r1193428123_0": "8" * 32}}, "FILE has a different MD5 on the computer than here"),
        ({"files": {"TASK_r1193428123_0": MD5}}, None),
        ({"files": {"FILE": (MD5, "file size too big")}}, "FILE could not be uploaded: file size too big"),
        ({"state": 5, "exit_status": 3}, None),
        ({"state": 3, "exit_status": 0}, None),
    ],
)
def test_success_is_state_5_exit_status_0_and_right_files(
    computer: Computer, result: Result, fields: dict[str, Any], fault: str | None
) -> None:
    upload(result)
    file = f"{result.name}_0"
    fields["files"] = {
        name.replace("FILE", file).replace("TASK", result.name): md5 for name, md5 in fields.get("files", {}).items()
    }
    report(computer, result, **fields)
    is_success = fault is None and fields.get("state", 5) == 5 and fields.get("exit_status", 0) == 0
    assert result.outcome == (Outcome.SUCCESS if is_success else Outcome.CLIENT_ERROR)
    assert [*map(str, result.report_faults)] == ([fault.replace("FILE", file)] if fault else [])


@pytest.mark.parametrize("half", [True, False])
def test_an_output_that_is_not_here_or_only_in_part_is_no_success(
    computer: Computer, result: Result, half: bool
) -> None:
    if half:
        upload(result, complete=False)
    report(computer, result)
    assert result.outcome == Outcome.CLIENT_ERROR
    assert [*map(str, result.report_faults)] == [f"{result.name}_0 was not uploaded"]


def test_an_output_may_be_optional(app: App, alice: User) -> None:
    outputs = [{"open_name": "log", "max_nbytes": 1000, "optional": True}]
    made = make_result(make_workunit(app, fpops_est=7.2e12, output_files=outputs))
    computer = computer_of(alice)
    computer.ask(1, now=NOON)
    assert report(computer, made).outcome == Outcome.SUCCESS


def test_a_run_time_longer_than_the_job_was_out_is_noted(computer: Computer, result: Result) -> None:
    upload(result)
    report(computer, result, final_elapsed_time=1e6)
    assert result.outcome == Outcome.SUCCESS
    assert [*map(str, result.report_faults)] == [
        "final_elapsed_time is 1,000,000 s, but the job was only out for 3,600 s"
    ]


@pytest.mark.parametrize("strange", ["nan", "inf", "-1", "1e304", "x", "0x10"])
def test_a_run_time_that_is_none_is_noted_and_left_out(computer: Computer, result: Result, strange: str) -> None:
    upload(result)
    report(computer, result, final_elapsed_time=strange)
    assert result.outcome == Outcome.SUCCESS
    assert result.elapsed_secs is None
    assert [*map(str, result.report_faults)] == ["final_elapsed_time is not a decimal number from 0 to 1e+11"]


def test_a_result_is_acknowledged_each_time_and_counts_once(computer: Computer, result: Result) -> None:
    upload(result)
    report(computer, result, final_elapsed_time=100)
    before = HostAppVersion.objects.get().max_jobs_per_day
    report(computer, result, final_elapsed_time=200, exit_status=1, state=3, hours=2)
    assert (result.outcome, result.elapsed_secs) == (Outcome.SUCCESS, 100)
    assert HostAppVersion.objects.get().max_jobs_per_day == before


def test_twice_in_one_request_is_once(computer: Computer, result: Result) -> None:
    upload(result)
    twice = result_xml(result.name, final_elapsed_time=100) + result_xml(result.name, state=3, exit_status=1)
    reply = computer.ask(results=twice, now=NOON + dt.timedelta(hours=1))
    assert names(reply, "result_ack") == [result.name]
    result.refresh_from_db()
    assert (result.outcome, result.elapsed_secs) == (Outcome.SUCCESS, 100)


def test_unknown_results_are_acknowledged(computer: Computer) -> None:
    assert names(computer.ask(results=result_xml("unheard_of")), "result_ack") == ["unheard_of"]


def test_another_computer_cannot_report_it(computer: Computer, result: Result, alice: User, bob: User) -> None:
    upload(result)
    for stranger in (computer_of(alice), computer_of(bob)):
        reply = stranger.ask(results=result_xml(result.name))
        assert names(reply, "result_ack") == [result.name]
    result.refresh_from_db()
    assert result.server_state == ServerState.IN_PROGRESS


def test_an_unsent_result_cannot_be_reported(app: App, computer: Computer) -> None:
    unsent = make_result(make_workunit(app))
    assert report(computer, unsent).server_state == ServerState.UNSENT


def test_a_late_result_is_taken(computer: Computer, result: Result) -> None:
    upload(result)
    Result.objects.update(server_state=ServerState.OVER, outcome=Outcome.NO_REPLY)
    report(computer, result, hours=30)
    assert result.outcome == Outcome.SUCCESS


def test_a_result_of_a_cancelled_workunit_does_no_harm(computer: Computer, result: Result) -> None:
    Workunit.objects.update(error_mask=16, assimilate_state=1)
    report(computer, result, state=6, exit_status=202)
    assert result.outcome == Outcome.CLIENT_ERROR
    assert not HostAppVersion.objects.get().error_rate > 0.1


@pytest.mark.parametrize(
    ("fields", "quota", "error_rate"),
    [
        # 100 jobs for each of 4 processors; a crash costs one.
        ({"state": 3, "exit_status": 1}, 399, 0.2),
        # An abort begins a probation, but costs no job.
        ({"state": 6, "exit_status": 203}, 400, 0.2),
        # The project did not abort it: nobody can have meant this.
        ({"state": 6, "exit_status": 202}, 399, 0.2),
        # A failed download may be the project's own fault, but begins a probation; a failed upload counts as a crash.
        ({"state": 1, "exit_status": -186}, 400, 0.2),
        ({"state": 7, "exit_status": -127}, 399, 0.2),
        # 400 × 2, but never above 400
        ({"state": 5, "exit_status": 0}, 400, 0.1),
    ],
)
def test_what_a_report_does_to_the_computers_record(
    computer: Computer, result: Result, fields: dict[str, Any], quota: int, error_rate: float
) -> None:
    upload(result)
    report(computer, result, **fields)
    record = HostAppVersion.objects.get()
    assert record.max_jobs_per_day == quota
    assert record.error_rate == pytest.approx(error_rate)
    # A new spell lasts a delay bound (a day) from the error; else the one that began with the sending goes on.
    since = NOON + dt.timedelta(hours=1 if error_rate > 0.1 else 0)
    assert record.host_scale_at == since + dt.timedelta(days=1)


def test_the_quota_recovers_by_doubling(app: App, alice: User) -> None:
    for _ in range(3):
        make_result(make_workunit(app, fpops_est=7.2e12, output_files=[]))
    computer = computer_of(alice)
    computer.ask(0, 3, now=NOON)
    HostAppVersion.objects.update(max_jobs_per_day=3)
    quotas = []
    for name in list(computer.jobs):
        computer.ask(results=result_xml(name), now=NOON + dt.timedelta(hours=1))
        quotas.append(HostAppVersion.objects.get().max_jobs_per_day)
    assert quotas == [6, 12, 24]


def trickle(name: str, text: str = "<fraction>0.4</fraction>") -> str:
    return (
        f"<msg_from_host>\n<result_name>{name}</result_name>\n<time>1795249690</time>\n"
        f"<variety>progress</variety>\n<text>\n{text}\n</text>\n</msg_from_host>\n"
    )


def test_a_trickle_is_acknowledged_and_stored_once(computer: Computer, result: Result) -> None:
    for _ in range(2):
        assert "<message_ack/>" in computer.ask(extra=trickle(result.name))
    (stored,) = Trickle.objects.all()
    assert (stored.result, stored.variety, stored.text) == (result, "progress", "<fraction>0.4</fraction>")


def test_a_trickle_of_somebody_elses_job_is_dropped(computer: Computer, result: Result, bob: User) -> None:
    assert "<message_ack/>" in computer_of(bob).ask(extra=trickle(result.name) + trickle("unheard_of"))
    assert not Trickle.objects.exists()


taken: list[str] = []


def take(message: Trickle, now: dt.datetime) -> None:
    if "broken" in message.text:
        raise RuntimeError("as if")
    if "elsewhere" in message.text:
        raise OperationalError("the app's own database does not answer")
    if "useless" in message.text:
        raise TrickleError("It says nothing.")
    taken.append(message.text)


def test_trickles_are_handed_to_the_function_of_their_app(computer: Computer, result: Result) -> None:
    App.objects.update(trickle_function=f"{__name__}.take")
    taken.clear()
    computer.ask(extra="".join(trickle(result.name, text) for text in ("broken", "elsewhere", "useless", "fine")))
    assert handle_waiting(timezone.now()) == 4
    assert taken == ["fine"]
    assert [*map(str, Trickle.objects.order_by("id").values_list("fault", flat=True))] == [
        "The function that takes this app’s messages failed; see the log.",
        "The function that takes this app’s messages failed; see the log.",
        "It says nothing.",
        "None",
    ]
    assert handle_waiting(timezone.now()) == 0


class WorkerLost(BaseException):
    """Nothing after the call is done, as if the process had ended."""


def take_or_not(message: Trickle, now: dt.datetime) -> None:
    taken.append(message.text)
    if "hangs" in message.text:
        raise SoftTimeLimitExceeded
    if "slow" in message.text:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_sleep(60)")
    if "ends" in message.text:
        raise WorkerLost


def test_a_message_that_hangs_or_ends_the_worker_keeps_no_other_waiting(
    computer: Computer, result: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trickles, "FUNCTION_SECS", 0.05)
    App.objects.update(trickle_function=f"{__name__}.take_or_not")
    taken.clear()
    computer.ask(extra="".join(trickle(result.name, text) for text in ("ends it", "hangs", "slow", "fine")))
    for expected in (["ends it"], ["hangs", "slow", "fine", "ends it"], ["ends it"]):
        with pytest.raises(WorkerLost):
            handle_waiting(timezone.now())
        assert taken == expected
        taken.clear()
    assert (handle_waiting(timezone.now()), handle_waiting(timezone.now()), taken) == (1, 0, [])
    assert [*map(str, Trickle.objects.order_by("id").values_list("fault", flat=True))] == [
        "Given up: its function was called 3 times and never returned; see the log.",
        "The function that takes this app’s messages did not finish in time.",
        "The function that takes this app’s messages failed; see the log.",
        "None",
    ]


def test_one_pass_at_a_time_calls_an_apps_function(computer: Computer, result: Result) -> None:
    App.objects.update(trickle_function=f"{__name__}.take")
    computer.ask(extra=trickle(result.name))
    place = [trickles.LOCK, result.app_id]
    with closing(connection.copy()) as another, another.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", place)
        assert handle_waiting(timezone.now()) == 0
        cursor.execute("SELECT pg_advisory_unlock(%s, %s)", place)
        assert Trickle.objects.filter(handled_at=None, fault__isnull=True).count() == 1
        assert handle_waiting(timezone.now()) == 1
        # And it is free again.
        cursor.execute("SELECT pg_try_advisory_lock(%s, %s), pg_advisory_unlock(%s, %s)", [*place, *place])
        assert cursor.fetchone() == (True, True)


def test_what_is_interrupted_has_had_two_minutes(computer: Computer, result: Result) -> None:
    App.objects.update(trickle_function=f"{__name__}.take")
    computer.ask(extra=trickle(result.name))
    assert handle_waiting(timezone.now(), until=monotonic()) == 0
    assert Trickle.objects.filter(handled_at=None, fault__isnull=True).count() == 1
    assert tasks.handle_trickles.soft_time_limit == trickles.BEGIN_SECS + 120 < settings.CELERY_TASK_TIME_LIMIT


def part(result: Result, secs: str, name: str = "") -> str:
    return trickle(result.name, f"<result_name>{name or result.name}</result_name><elapsed_time>{secs}</elapsed_time>")


def test_credit_for_a_part_of_a_long_job(computer: Computer, result: Result, alice: User) -> None:
    App.objects.update(trickle_function="scheduler.rpc.trickles.grant_partial_credit", min_avg_pfc=2.0)
    result.app.versions.update(pfc_n=200, pfc_avg=2.0, pfc_scale=1.0)
    HostAppVersion.objects.update(pfc_n=20, pfc_avg=2.0, scale_probation=False, host_scale_at=None)
    later = NOON + dt.timedelta(hours=2)
    # 4e9 × 3,600 × 200 / 86,400e9 = 100 / 3 an hour; the last message names half an hour more.
    for secs, total in (("3600", 100 / 3), ("3600", 100 / 3), ("5400", 50.0)):
        computer.ask(extra=part(result, secs))
        handle_waiting(later)
        result.refresh_from_db()
        assert result.partial_elapsed_secs == float(secs)
        assert result.partial_credit == pytest.approx(total)
        assert UserCredit.objects.get(user=alice).total_credit == pytest.approx(total)
        assert HostCredit.objects.get().total_credit == pytest.approx(total)
    # More than the time that the job is out brings no more than that.
    computer.ask(extra=part(result, "1e9"))
    handle_waiting(later)
    result.refresh_from_db()
    assert result.partial_elapsed_secs == 7200


def test_fifty_jobs_in_hand_bring_what_one_processor_can_earn(app: App, alice: User, settings: Settings) -> None:
    settings.MAX_JOBS_IN_PROGRESS = settings.MAX_JOBS_PER_RPC = 50
    App.objects.update(trickle_function="scheduler.rpc.trickles.grant_partial_credit", min_avg_pfc=2.0)
    app.versions.update(pfc_n=200, pfc_avg=2.0, pfc_scale=1.0)
    for _ in range(50):
        make_result(make_workunit(app, fpops_est=1e13, delay_bound_secs=8_640_000))
    computer = computer_of(alice, ncpus=1)
    computer.ask(1e9, now=NOON)
    assert len(computer.jobs) == 50
    assert set(Result.objects.values_list("ninstances", flat=True)) == {1.0}
    HostAppVersion.objects.update(pfc_n=20, pfc_avg=2.0, scale_probation=False, host_scale_at=None)
    an_hour_later = NOON + dt.timedelta(hours=1)
    messages = "".join(part(result, "3600") for result in Result.objects.all())
    computer.ask(extra=messages, now=an_hour_later)
    assert handle_waiting(an_hour_later) == 50
    # 4e9 × 3,600 × 200 / 86,400e9 = 100 / 3 and not 50 times that
    assert HostCredit.objects.get().total_credit == pytest.approx(100 / 3)
    assert Trickle.objects.filter(fault__code="trickle_without_credit").count() == 49


@pytest.mark.parametrize(
    ("secs", "name", "fault"),
    [
        ("100", "another", "trickle_of_other_job"),
        ("x", "", "trickle_without_fields"),
        ("1e", "", "trickle_no_number"),
        # Nothing is known yet of the version: the final report brings the default.
        ("100", "", "trickle_without_credit"),
    ],
)
def test_a_message_that_brings_no_credit_says_why(
    computer: Computer, result: Result, secs: str, name: str, fault: str
) -> None:
    App.objects.update(trickle_function="scheduler.rpc.trickles.grant_partial_credit")
    HostAppVersion.objects.all().delete()
    computer.ask(extra=part(result, secs, name))
    handle_waiting(NOON + dt.timedelta(hours=2))
    assert Trickle.objects.get().fault.code == fault
    assert not UserCredit.objects.filter(total_credit__gt=0).exists()


def test_a_report_through_http(computer: Computer, result: Result) -> None:
    upload(result)
    reply = post(computer.request(results=result_xml(result.name)))
    assert names(reply, "result_ack") == [result.name]
    result.refresh_from_db()
    assert result.outcome == Outcome.SUCCESS
