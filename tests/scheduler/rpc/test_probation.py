"""No ending of a job without a valid result leaves probation unaffected, whatever the client calls it."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from credit.models import App, HostAppVersion, Outcome, Result, RuleSet, ServerState, Workunit
from credit.validator.passes import run_pass
from portal.models import User
from scheduler.lifecycle import transitioner
from scheduler.programs import catalogue
from tests.support.credit_engine_facts import about
from tests.support.credit_factories import make_app, make_result, make_version, make_workunit
from tests.support.scheduler_clients import Computer, computer_of, names, result_xml

pytestmark = pytest.mark.django_db

NOON = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC)
LATER = NOON + dt.timedelta(hours=1)
DAY = dt.timedelta(days=1)
PROVEN = {"scale_probation": False, "host_scale_at": NOON - DAY, "error_rate": 0.02, "consecutive_valid": 50}
SUCCESS: dict[str, Any] = {
    "server_state": ServerState.OVER, "outcome": Outcome.SUCCESS, "received_at": LATER, "elapsed_secs": 1800.0,
}  # fmt: skip
OUTPUTS = [{"open_name": "out", "max_nbytes": 1000}]


@pytest.fixture
def app(db: None) -> App:
    app = make_app(host_scale_check=True)
    make_version(app)
    return app


@pytest.fixture
def computer(app: App, alice: User) -> Computer:
    """A computer that has left probation, and got three jobs at noon that are due in a day."""
    for _ in range(3):
        make_result(make_workunit(app, fpops_est=7.2e12, output_files=OUTPUTS, delay_bound_secs=86_400))
    computer = computer_of(alice)
    computer.ask(0, 3, now=NOON)
    assert len(computer.jobs) == 3
    HostAppVersion.objects.update(**PROVEN)
    return computer


def end(computer: Computer, **fields: Any) -> Result:
    """The computer reports its first job so, an hour after noon."""
    name = computer.jobs[0]
    computer.ask(results=result_xml(name, **fields), now=LATER)
    assert name not in computer.jobs
    return Result.objects.get(name=name)


def quota() -> int:
    return HostAppVersion.objects.get().max_jobs_per_day


@pytest.mark.parametrize(
    ("fields", "njobs"),
    [
        pytest.param({"state": 3, "exit_status": 1}, 399, id="compute error"),
        pytest.param({"state": 6, "exit_status": 203}, 400, id="aborted by the volunteer"),
        pytest.param({"state": 6, "exit_status": 202}, 399, id="202 that nobody asked for"),
        pytest.param({"state": 3, "exit_status": 202}, 399, id="202 as a compute error"),
        pytest.param({"state": 1, "exit_status": -186}, 400, id="failed download"),
        pytest.param({"state": 7, "exit_status": -127}, 399, id="failed upload"),
        pytest.param({"state": 5, "exit_status": 0}, 399, id="success with nothing uploaded"),
        pytest.param({"state": 0, "exit_status": 0}, 399, id="no state"),
        pytest.param({"state": 77, "exit_status": 0}, 399, id="unknown state"),
    ],
)
def test_a_report_without_success_begins_a_new_spell(computer: Computer, fields: dict[str, Any], njobs: int) -> None:
    assert end(computer, **fields).outcome == Outcome.CLIENT_ERROR
    record = HostAppVersion.objects.get()
    assert (record.scale_probation, record.host_scale_at) == (True, LATER + DAY)
    # 100 jobs a day for each of 4 processors
    assert record.max_jobs_per_day == njobs
    assert (record.error_rate, record.failing_share) == (about(0.12), about(0.01))


def test_jobs_that_are_left_out_while_no_work_is_sent_begin_a_new_spell(computer: Computer) -> None:
    computer.ask(others=computer.jobs[1:], now=LATER, extra="<dont_send_work/>\n")
    lost = Result.objects.get(outcome=Outcome.CLIENT_DETACHED)
    assert lost.name == computer.jobs[0]
    record = HostAppVersion.objects.get()
    assert (record.scale_probation, record.host_scale_at) == (True, LATER + DAY)
    # Computers that are set up again lose jobs, too: none of the jobs of a day is taken away.
    assert (record.max_jobs_per_day, record.consecutive_valid) == (400, 0)
    assert (record.error_rate, record.failing_share) == (about(0.12), about(0.01))


def test_a_lost_job_that_is_sent_again_counts_for_nothing(computer: Computer) -> None:
    reply = computer.ask(others=computer.jobs[1:], now=LATER)
    assert names(reply, "result") == [computer.jobs[0]]
    assert not HostAppVersion.objects.get().scale_probation


def test_a_lost_job_that_nobody_needs_counts_for_nothing(computer: Computer) -> None:
    Workunit.objects.update(error_mask=16, assimilate_state=1)
    computer.ask(others=computer.jobs[1:], now=LATER)
    assert Result.objects.filter(outcome=Outcome.CLIENT_DETACHED).count() == 1
    assert not HostAppVersion.objects.get().scale_probation


def test_what_the_project_cancelled_counts_for_nothing(computer: Computer) -> None:
    Workunit.objects.update(error_mask=16, assimilate_state=1)
    mine = computer.jobs[0]
    assert mine in names(computer.ask(now=LATER), "result_abort")
    computer.jobs = [mine]
    end(computer, state=6, exit_status=202)
    assert_untouched()


def test_what_was_decided_before_it_began_counts_for_nothing(app: App, computer: Computer, bob: User) -> None:
    mine = Result.objects.get(name=computer.jobs[0])
    replicas(mine, computer_of(bob))
    assert run_pass(app.pk, LATER).nvalid == 2
    assert names(computer.ask(now=LATER), "result_abort_if_not_started") == [mine.name]
    end(computer, state=6, exit_status=202)
    assert_untouched()


def assert_untouched() -> None:
    record = HostAppVersion.objects.order_by("pk").first()
    assert record is not None
    assert (record.scale_probation, record.error_rate, record.max_jobs_per_day) == (False, 0.02, 400)


def replicas(of: Result, others: Computer) -> None:
    """Two replicas of another's job agree, and its workunit waits to be validated."""
    others.ask(now=NOON)
    for number in (1, 2):
        make_result(
            of.workunit, host_id=others.hostid, app_version=of.app_version, sent_at=NOON, peak_flops=4e9,
            name=f"replica_{number}", output_digest=b"r" * 16, **SUCCESS,
        )  # fmt: skip
    Workunit.objects.filter(pk=of.workunit_id).update(min_quorum=2, target_nresults=3, need_validate=True)


def test_a_time_out_begins_a_new_spell(computer: Computer) -> None:
    transitioner.run(NOON + 2 * DAY)
    record = HostAppVersion.objects.get()
    assert (record.scale_probation, record.host_scale_at) == (True, NOON + 3 * DAY)
    assert record.max_jobs_per_day == 397


def test_a_job_that_timed_out_counts_once_also_if_its_failure_is_reported_later(computer: Computer) -> None:
    """A computer that was off for long gives all its jobs up, and would need twice as many good ones afterwards."""
    transitioner.run(NOON + 2 * DAY)
    before = HostAppVersion.objects.values().get()
    # 1 − 0.99³
    assert before["failing_share"] == about(0.029701)
    reports = "".join(result_xml(name, state=6, exit_status=203) for name in computer.jobs)
    computer.ask(results=reports, now=NOON + 3 * DAY)
    assert set(Result.objects.exclude(host=None).values_list("outcome", flat=True)) == {Outcome.CLIENT_ERROR}
    assert HostAppVersion.objects.values().get() == before


def test_a_wrong_output_begins_a_spell_that_later_jobs_do_not_move(app: App, computer: Computer, bob: User) -> None:
    mine = Result.objects.get(name=computer.jobs[0])
    Result.objects.filter(pk=mine.pk).update(**SUCCESS, output_digest=b"w" * 16)
    computer.jobs.remove(mine.name)
    replicas(mine, computer_of(bob))
    assert run_pass(app.pk, LATER).ninvalid == 1
    record = HostAppVersion.objects.get(host=computer.hostid)
    assert (record.scale_probation, record.host_scale_at, record.consecutive_valid) == (True, LATER + DAY, 0)
    make_result(make_workunit(app, delay_bound_secs=2 * 86_400))
    computer.ask(0, 1, now=LATER)
    record.refresh_from_db()
    assert record.host_scale_at == LATER + DAY


def test_a_computer_whose_every_upload_fails_comes_down_to_one_job_a_day(app: App, alice: User) -> None:
    app.max_jobs_per_day_init = 1
    app.save()
    quotas = []
    computer = computer_of(alice)
    for day in range(5):
        make_result(make_workunit(app, fpops_est=7.2e12, output_files=OUTPUTS))
        computer.ask(0, 1, now=NOON + day * DAY)
        computer.ask(results=result_xml(computer.jobs[0], state=7, exit_status=-127), now=LATER + day * DAY)
        quotas.append(quota())
    # 1 a day for each of 4 processors, one fewer for each failure, and never none
    assert quotas == [3, 2, 1, 1, 1]


def test_a_job_that_is_due_soon_does_not_end_a_longer_spell(app: App, computer: Computer) -> None:
    ends = NOON + 7 * DAY
    HostAppVersion.objects.update(scale_probation=True, host_scale_at=ends)
    end(computer, state=3, exit_status=1)
    assert HostAppVersion.objects.get().host_scale_at == ends
    transitioner.run(NOON + 2 * DAY)
    assert HostAppVersion.objects.get().host_scale_at == ends


@pytest.mark.parametrize("rule_set", [RuleSet.LETTER, RuleSet.DEPLOYED])
@pytest.mark.parametrize(
    "fields",
    [
        {"state": 6, "exit_status": 202},
        {"state": 1, "exit_status": -186},
        {"state": 7, "exit_status": -127},
        {"state": 5, "exit_status": 0},
    ],
)
def test_by_the_other_rule_sets_only_errors_and_aborts_do(
    app: App, computer: Computer, fields: dict[str, Any], rule_set: RuleSet
) -> None:
    app.rule_set = rule_set
    app.save()
    catalogue.forget()
    end(computer, **fields)
    record = HostAppVersion.objects.get()
    assert (record.scale_probation, record.error_rate, record.max_jobs_per_day) == (False, 0.02, 400)


def test_a_new_version_is_no_way_to_leave_failures_behind(app: App, computer: Computer) -> None:
    """Its record starts with the failing share and the samples of the older version's."""
    known = {"clean_pfc_n": 12, "clean_pfc_avg": 1.1, "waiting_pfc_n": 7, "waiting_pfc_avg": 1.2}
    HostAppVersion.objects.update(failing_share=0.4, samples_at=NOON, recent_pfc_n=3, recent_pfc_avg=1.3, **known)
    newer = make_version(app, 101)
    catalogue.forget()
    make_result(make_workunit(app, fpops_est=7.2e12, output_files=OUTPUTS, delay_bound_secs=86_400))
    computer.ask(0, 1, now=LATER)
    record = HostAppVersion.objects.get(app_version=newer)
    assert (record.failing_share, record.clean_pfc_n, record.waiting_pfc_avg) == (0.4, 12, 1.2)
    assert (record.recent_pfc_n, record.samples_at) == (3, NOON)


def released_and_begun(app: App, computer: Computer) -> HostAppVersion:
    """A new version's record, which the computer's first job of it makes; it still has three of the older version."""
    newer = make_version(app, 101)
    catalogue.forget()
    make_result(make_workunit(app, fpops_est=7.2e12, output_files=OUTPUTS, delay_bound_secs=86_400 * 7))
    computer.ask(0, 1, now=LATER)
    return HostAppVersion.objects.get(app_version=newer)


def assert_only_the_share_changed(record: HostAppVersion, share: float) -> None:
    before = (record.scale_probation, record.host_scale_at, record.error_rate, record.consecutive_valid)
    quota = record.max_jobs_per_day
    record.refresh_from_db()
    after = (record.scale_probation, record.host_scale_at, record.error_rate, record.consecutive_valid)
    assert (after, record.max_jobs_per_day) == (before, quota)
    assert record.failing_share == about(share)


def test_failed_jobs_of_the_version_before_count_for_the_new_ones_share(app: App, computer: Computer) -> None:
    """Otherwise who holds long jobs back until the next release would leave them behind."""
    record = released_and_begun(app, computer)
    end(computer, state=3, exit_status=1)
    assert_only_the_share_changed(record, 0.01)
    assert HostAppVersion.objects.exclude(pk=record.pk).get().failing_share == about(0.01)


def test_so_do_jobs_of_the_version_before_that_time_out(app: App, computer: Computer) -> None:
    record = released_and_begun(app, computer)
    transitioner.run(NOON + 2 * DAY)
    # 1 − 0.99³
    assert_only_the_share_changed(record, 0.029701)
    older = HostAppVersion.objects.exclude(pk=record.pk).get()
    assert (older.scale_probation, older.failing_share, older.max_jobs_per_day) == (True, about(0.029701), 397)


def test_a_job_that_fails_in_the_request_for_the_new_versions_first_counts_too(app: App, computer: Computer) -> None:
    newer = make_version(app, 101)
    catalogue.forget()
    make_result(make_workunit(app, fpops_est=7.2e12, output_files=OUTPUTS, delay_bound_secs=86_400))
    computer.ask(0, 1, results=result_xml(computer.jobs[0], state=3, exit_status=1), now=LATER)
    assert HostAppVersion.objects.get(app_version=newer).failing_share == about(0.01)


def test_versions_of_other_programs_do_not_count(app: App, computer: Computer) -> None:
    other = make_version(app, 101, plan_class="mt")
    record = HostAppVersion.objects.create(host_id=computer.hostid, app=app, app_version=other)
    catalogue.forget()
    end(computer, state=3, exit_status=1)
    transitioner.run(NOON + 2 * DAY)
    record.refresh_from_db()
    assert (record.failing_share, HostAppVersion.objects.count()) == (0, 2)
