"""The overall back-off of a project: what its server asks for, and what failed jobs bring about (6.6 document)."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from emulator.engine.client import Client
from emulator.engine.decisions import Choice
from emulator.engine.policies.names import PolicyName
from emulator.engine.policies.registry import make_policy
from emulator.engine.quirks import BOINC, Quirks
from emulator.engine.run import run
from emulator.engine.scenario import DAY_SECS, App, Project, Scenario, ScenarioError, StartJob
from emulator.engine.timeline.reasons import Reason
from emulator.engine.timeline.recorder import DecisionLog
from emulator.engine.timeline.results import Result, Timeline
from tests.support.emulated_client import HOUR_SECS, cpu_app, project, scenario


def failing(rate: float, hours: float = 1.0) -> App:
    return replace(cpu_app(hours), error_rate=rate)


def emulated(what: Scenario, policy: str = PolicyName.LTD, days: float = 5.0, quirks: Quirks | None = None) -> Result:
    return run(what, make_policy(policy, what, {}), days, quirks=quirks or Quirks())


def recorded(result: Result) -> Timeline:
    assert result.timeline is not None
    return result.timeline


def contacts(result: Result, project: int) -> list[float]:
    rpcs = recorded(result).rpcs
    return [at for at, of in zip(rpcs.at_secs, rpcs.project, strict=True) if of == project]


def failures(result: Result, project: int = 0) -> list[tuple[float, float]]:
    """(time, how long the project is left alone) of each failure."""
    made = result.decisions
    rows = zip(made.at_secs, made.reason, made.project, made.amount, strict=True)
    return [(at, wait) for at, reason, of, wait in rows if reason == Reason.JOB_FAILED and of == project]


@pytest.mark.parametrize("policy", PolicyName)
def test_a_server_that_wants_to_be_left_alone_is_contacted_no_sooner(policy: str) -> None:
    a, b = replace(project("A", 50, cpu_app()), request_delay_secs=HOUR_SECS), project("B", 50, cpu_app())
    result = emulated(scenario(a, b), policy, days=10.0)
    at = contacts(result, 0)
    assert len(at) > 5
    assert min(later - earlier for earlier, later in pairwise(at)) >= HOUR_SECS


def test_a_job_fails_at_any_part_of_its_run_time_and_counts_as_neither_met_nor_late() -> None:
    result = emulated(scenario(replace(project("A", 1, failing(1.0)), error_delay_secs=0.0), cpus=4), days=20.0)
    (row,) = result.projects
    assert (row.jobs, row.met, row.late) == (0, 0, 0)
    # Half an hour each on average: 4 CPUs for 20 days make 3840.
    assert row.failed == len(failures(result)) == pytest.approx(3840, rel=0.05)
    blocks = recorded(result).blocks
    lengths = sorted(end - start for start, end in zip(blocks.start_secs, blocks.end_secs, strict=True))
    assert lengths[0] < 0.02 * HOUR_SECS and 0.98 * HOUR_SECS < lengths[-1] <= HOUR_SECS
    # All its work is wasted, except that of the jobs that still run.
    assert row.wasted_flop == pytest.approx(row.used_flop, rel=0.01)


def test_the_rate_is_the_part_of_the_jobs_that_fail() -> None:
    (row,) = emulated(scenario(project("A", 1, failing(0.25)), cpus=4), days=30.0).projects
    # About 3300 jobs: three standard deviations are 3 * sqrt(0.25 * 0.75 / 3300) = 0.023.
    assert row.failed / (row.failed + row.jobs) == pytest.approx(0.25, abs=0.023)


def test_after_a_failure_the_project_is_left_alone_and_longer_after_each_more() -> None:
    a = replace(project("A", 50, failing(1.0, hours=6.0)), error_delay_secs=600.0)
    result = emulated(scenario(a, project("B", 50, cpu_app())), days=10.0)
    failed, at = failures(result), contacts(result, 0)
    assert len(failed) > 10
    for when, wait in failed:
        assert not [each for each in at if when < each < when + wait]
    # 600 s to its double after the first failure since the last contact, up to 4 hours after more of them.
    firsts = [wait for n, (when, wait) in enumerate(failed) if n == 0 or any(failed[n - 1][0] < t < when for t in at)]
    assert all(600.0 <= wait <= 1200.0 for wait in firsts)
    assert max(wait for _, wait in failed) > 1200.0
    assert max(wait for _, wait in failed) <= 4 * HOUR_SECS


def test_the_delay_after_a_failure_can_be_switched_off() -> None:
    a = replace(project("A", 50, failing(1.0)), error_delay_secs=0.0)
    assert {wait for _, wait in failures(emulated(scenario(a)))} == {0.0}


def test_the_overall_back_off_does_not_touch_the_ones_per_kind_nor_eligibility() -> None:
    # One failing job of A, then none to fetch for an hour: B runs; A goes on collecting long-term debt.
    a = replace(project("A", 50, failing(1.0, hours=20.0)), error_delay_secs=DAY_SECS)
    what = scenario(a, project("B", 50, cpu_app()))
    policy = make_policy(PolicyName.LTD, what, {})
    result = run(what, policy, 4.0)
    failed_at = failures(result)[0][0]
    levels = recorded(result).levels
    after = [b for at, b in zip(levels.at_secs, levels.standing[1], strict=True) if at > failed_at + HOUR_SECS]
    assert min(after) < 0.0  # B, which got all, owes


def test_no_policy_knows_beforehand_that_a_job_will_fail() -> None:
    what = scenario(project("A", 1, failing(1.0)))
    client = Client(what, 1, Quirks(), None, DecisionLog(0.0, 0.0))
    offer = client.projects[0].apps[0].offers[0]
    job = client.server.job(offer, 2 * HOUR_SECS * 1e9, HOUR_SECS * 1e9, 0.0, DAY_SECS)
    client.arrive(job)
    assert (job.left_secs(0.0), client.work_secs(0, 0.0)) == (HOUR_SECS, HOUR_SECS)
    client.apply(Choice([job], [Reason.CPU_PRIORITY], 0.0), 0.0)
    fails_at = job.end_secs
    assert 0 < fails_at < 2 * HOUR_SECS
    assert job.left_secs(fails_at / 2) == pytest.approx(HOUR_SECS - fails_at / 4)  # estimated at half of its time
    client.finish(job, fails_at)
    assert client.work_secs(0, fails_at + 10.0) == pytest.approx(0.0, abs=1e-6)
    assert client.projects[0].failed == 1


def test_jobs_of_the_start_fail_too_and_others_are_as_they_were() -> None:
    def what(rate: float) -> Scenario:
        jobs = tuple(StartJob("B", "cpu", 3600e9, 3600e9, DAY_SECS) for _ in range(20))
        return replace(scenario(project("A", 50, cpu_app()), project("B", 50, failing(rate))), jobs=jobs)

    spoiled, sound = emulated(what(1.0)), emulated(what(0.0))
    assert spoiled.projects[1].failed >= 20
    assert spoiled.projects[0].failed == sound.projects[0].failed == sound.projects[1].failed == 0


def test_with_quirks_a_failed_job_is_not_late_when_it_is_reported() -> None:
    late = replace(failing(1.0), latency_bound_secs=1.0)
    what = Scenario(
        scenario(project("A", 1, cpu_app())).host,
        (Project("A", 1, (late,), has_work=False),),
        jobs=(StartJob("A", "cpu", 3600e9, 3600e9, 1.0),),
    )
    (row,) = emulated(what, PolicyName.REC, quirks=BOINC).projects
    assert (row.failed, row.met, row.late) == (1, 0, 0)


@pytest.mark.parametrize("rate", [1.5, float("nan"), -0.1])
def test_an_impossible_rate_is_refused(rate: float) -> None:
    with pytest.raises(ScenarioError, match="error_rate"):
        scenario(project("A", 1, failing(rate)))


def test_an_impossible_delay_is_refused() -> None:
    with pytest.raises(ScenarioError, match="error_delay_secs"):
        scenario(replace(project("A", 1, cpu_app()), error_delay_secs=-1.0))
