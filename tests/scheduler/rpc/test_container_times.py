"""Times that clients report wrongly for jobs in containers, from the request's text to the credit.

CPU time comes multiplied by the job's processors, and the run time starts again when a suspended job goes on.
"""

from __future__ import annotations

import datetime as dt

import pytest

from credit.models import App, CreditSystem, HostAppVersion, Result, RuleSet
from portal.models import User
from scheduler.lifecycle import transitioner
from scheduler.rpc.trickles import handle_waiting
from tests.support.credit_factories import make_app, make_result, make_version, make_workunit
from tests.support.scheduler_clients import Computer, computer_of, result_xml
from tests.support.validator_runs import differences, validate

pytestmark = pytest.mark.django_db

SENT = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC)
BACK = SENT + dt.timedelta(hours=1)
USUAL = 12e12 * 200 / 86400e9
"""The credit of 3,000 s at 4 GFLOPS, which is 1.2 times the estimate and what such jobs usually take."""


@pytest.fixture
def app(db: None) -> App:
    app = make_app(min_avg_pfc=1.2, trickle_function="scheduler.rpc.trickles.grant_partial_credit")
    make_version(app, pfc_n=1000, pfc_avg=1.2, pfc_scale=1.0)
    return app


def sent_job(app: App, user: User) -> tuple[Computer, Result]:
    """A job of 3,000 s on a computer that had many."""
    make_result(make_workunit(app, fpops_est=1e13, min_quorum=1, target_nresults=1))
    computer = computer_of(user)
    computer.ask(1, now=SENT)
    HostAppVersion.objects.update(pfc_n=100, pfc_avg=1.2, et_n=100, et_avg=3e-10, et_var=0.0, peak_flops=4e9)
    return computer, Result.objects.get(name=computer.jobs[0])


def credit_of_report(app: App, computer: Computer, job: Result, elapsed_secs: float, cpu_secs: float) -> float | None:
    report = result_xml(job.name, final_elapsed_time=elapsed_secs, final_cpu_time=cpu_secs)
    computer.ask(results=report, now=BACK)
    Result.objects.update(output_digest=b"o" * 16)
    transitioner.run(BACK)
    validate(app, BACK)
    job.refresh_from_db()
    assert differences() == []
    return job.granted_credit


@pytest.mark.parametrize(
    ("rule_set", "system"),
    [
        (RuleSet.PUBLISHED, CreditSystem.CREDITNEW),
        (RuleSet.LETTER, CreditSystem.CREDITNEW),
        (RuleSet.PUBLISHED, CreditSystem.RUN_TIME),
        # CPU time × benchmark, at most run time × peak FLOPS
        (RuleSet.PUBLISHED, CreditSystem.PEAK_FLOPS),
    ],
)
def test_cpu_time_that_is_multiplied_by_processors_brings_no_more(
    rule_set: str, system: str, app: App, alice: User
) -> None:
    App.objects.update(rule_set=rule_set, credit_system=system, max_credited_secs=1e9)
    computer, job = sent_job(app, alice)
    assert credit_of_report(app, computer, job, 3000.0, 8 * 3000.0) == pytest.approx(USUAL)
    assert job.cpu_secs == 24_000.0


def test_a_run_time_that_started_again_claims_less_for_that_job(app: App, alice: User) -> None:
    computer, job = sent_job(app, alice)
    # 500 s since the last suspension, and all of the CPU time
    assert credit_of_report(app, computer, job, 500.0, 2900.0) == pytest.approx(USUAL / 6)
    # A hundredth of what is missing comes back with each later job, as the average is lower: 0.99 × 1.2 + 0.01 × 0.2
    assert HostAppVersion.objects.get().pfc_avg == pytest.approx(0.99 * 1.2 + 0.01 * 0.2)


def test_of_a_long_job_at_least_the_run_time_that_messages_told_counts(app: App, alice: User) -> None:
    computer, job = sent_job(app, alice)
    text = f"<result_name>{job.name}</result_name><elapsed_time>2400</elapsed_time>"
    message = f"<msg_from_host><result_name>{job.name}</result_name><time>1</time><variety>partial_credit</variety>\n"
    later = SENT + dt.timedelta(minutes=50)
    computer.ask(extra=f"{message}<text>{text}</text></msg_from_host>\n", now=later)
    handle_waiting(later)
    # It starts again after 2,400 s, and says 600 s at the end.
    assert credit_of_report(app, computer, job, 600.0, 2900.0) == pytest.approx(USUAL * 2400 / 3000)
