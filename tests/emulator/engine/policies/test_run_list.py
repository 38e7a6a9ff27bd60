"""The modern policy's choice of jobs and what it foresees (client scheduling document)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from emulator.engine.client import Client
from emulator.engine.policies.rec import Rec
from emulator.engine.quirks import Quirks
from emulator.engine.run import run
from emulator.engine.scenario import (
    CPU,
    App,
    Host,
    Normal,
    Preferences,
    Processor,
    Project,
    Scenario,
    Standing,
    StartJob,
    Version,
)
from emulator.engine.timeline.reasons import Reason
from emulator.engine.timeline.recorder import DecisionLog
from tests.support.emulated_client import busy_secs, forecast_of, late_jobs, ranked_by

HOUR = 3600.0
GPU_VERSION = Version(1e9, cpus=0.1, gpu="NVIDIA", gpus=1.0)


CPU_VERSION = Version(1e9)


def app(name: str, *, hours: float = 1.0, version: Version = CPU_VERSION, latency_hours: float = 240.0) -> App:
    size = Normal(hours * HOUR * version.flops)
    return App(name, (version,), size, size, latency_hours * HOUR)


def with_jobs(scenario: Scenario) -> tuple[Client, Rec]:
    """A client with the scenario's jobs at time 0, and a policy that has begun."""
    client = Client(scenario, 1, Quirks(), None, DecisionLog(0.0, 0.0))
    for job in scenario.jobs:
        state = next(state for state in client.projects if state.name == job.project)
        offer = next(o for known in state.apps if known.app.name == job.app for o in known.offers)
        client.arrive(client.server.job(offer, job.size_flop, job.estimate_flop, 0.0, job.deadline_secs))
    policy = Rec()
    policy.begin(client)
    return client, policy


def start_jobs(project: str, name: str, count: int, *, hours: float, deadline_hours: float) -> tuple[StartJob, ...]:
    flop = hours * HOUR * 1e9
    return tuple(StartJob(project, name, flop, flop, deadline_hours * HOUR + i) for i in range(count))


def test_the_four_steps_come_in_the_documents_order() -> None:
    # Two GPUs, two CPUs. A's jobs have 3 hours and may take 2.5; but A has used much, so round-robin takes the
    # others' first, one at a time, and A's would end after 2 + 2.5 > 3 hours. B's have all the time they need.
    scenario = Scenario(
        Host((Processor(CPU, 2, 1e9), Processor("NVIDIA", 2, 1e9))),
        (
            Project(
                "A", 1, (app("a", hours=2.5), app("ag", hours=2.5, version=GPU_VERSION)), standing=Standing(rec=1e6)
            ),
            Project("B", 100, (app("b", hours=2.0), app("bg", hours=2.0, version=GPU_VERSION))),
        ),
        jobs=(
            *start_jobs("B", "b", 4, hours=2.0, deadline_hours=200.0),
            *start_jobs("B", "bg", 4, hours=2.0, deadline_hours=200.0),
            *start_jobs("A", "a", 1, hours=2.5, deadline_hours=3.0),
            *start_jobs("A", "ag", 1, hours=2.5, deadline_hours=3.0),
        ),
    )
    _, policy = with_jobs(scenario)
    choice = policy.choose(0.0)
    assert list(choice.reasons) == [
        Reason.GPU_DEADLINE,
        Reason.CPU_DEADLINE,
        Reason.GPU_PRIORITY,
        Reason.CPU_PRIORITY,
    ]
    assert [job.project.name for job in choice.jobs] == ["A", "A", "B", "B"]
    assert [job.kind for job in choice.jobs] == [1, 0, 1, 0]


def test_deadline_misses_run_by_earliest_deadline() -> None:
    # One CPU, three jobs of 2 hours due in 6, 5 and 4 hours less a minute: they can't all wait their turn.
    jobs = tuple(StartJob("A", "a", 2 * HOUR * 1e9, 2 * HOUR * 1e9, hours * HOUR - 60.0) for hours in (6.0, 5.0, 3.0))
    scenario = Scenario(Host((Processor(CPU, 1, 1e9),)), (Project("A", 1, (app("a", hours=2.0),)),), jobs=jobs)
    _, policy = with_jobs(scenario)
    choice = policy.choose(0.0)
    # First come, first served: they end at 2, 4 and 6 hours; the second is in time, the others late.
    assert [job.deadline_secs for job in choice.jobs] == [3 * HOUR - 60.0]
    assert choice.reasons == [Reason.CPU_DEADLINE]


def test_priority_is_recent_credit_over_share() -> None:
    # 30/60 < 20/30 < 10/10, so A comes first whatever has the least REC; with 3 CPUs and bumps of an hour
    # (REC of 1 GFLOPS for an hour: 0.58 credit a day) A, A, A: 30.6/60, 31.2/60 are still less than 20/30.
    scenario = Scenario(
        Host((Processor(CPU, 3, 1e9),)),
        tuple(
            Project(name, share, (app("x"),), standing=Standing(rec=rec))
            for name, share, rec in (("A", 60, 30), ("B", 30, 20), ("C", 10, 10))
        ),
        jobs=tuple(job for name in "ABC" for job in start_jobs(name, "x", 4, hours=1.0, deadline_hours=200.0)),
    )
    _, policy = with_jobs(scenario)
    assert [job.project.name for job in policy.choose(0.0).jobs] == ["A", "A", "A"]


def test_a_chosen_job_counts_as_if_it_had_run_for_a_period() -> None:
    # No REC at all: each choice raises its project's, so equal shares take turns, and 2:1 is 2:1.
    def chosen(*shares: int) -> str:
        scenario = Scenario(
            Host((Processor(CPU, 3, 1e9),)),
            tuple(Project(name, share, (app("x"),)) for name, share in zip("AB", shares, strict=True)),
            jobs=tuple(job for name in "AB" for job in start_jobs(name, "x", 4, hours=1.0, deadline_hours=200.0)),
        )
        return "".join(sorted(job.project.name for job in with_jobs(scenario)[1].choose(0.0).jobs))

    assert chosen(1, 1) == "AAB"
    assert chosen(2, 1) == "AAB"
    assert chosen(1, 3) == "ABB"


def test_a_project_without_share_runs_only_what_others_leave() -> None:
    scenario = Scenario(
        Host((Processor(CPU, 2, 1e9),)),
        (Project("Z", 0, (app("x"),)), Project("B", 1, (app("x"),), standing=Standing(rec=1e9))),
        jobs=tuple(job for name in "ZB" for job in start_jobs(name, "x", 1, hours=1.0, deadline_hours=200.0)),
    )
    assert [job.project.name for job in with_jobs(scenario)[1].choose(0.0).jobs] == ["B", "Z"]


def test_a_running_job_keeps_its_slice_and_competes_after_it() -> None:
    scenario = Scenario(
        Host((Processor(CPU, 1, 1e9),)),
        (Project("A", 1, (app("x"),)), Project("B", 1, (app("x"),))),
        jobs=tuple(job for name in "AB" for job in start_jobs(name, "x", 1, hours=5.0, deadline_hours=200.0)),
    )
    client, policy = with_jobs(scenario)
    first = policy.choose(0.0)
    assert first.recheck_secs == HOUR
    client.apply(first, 0.0)
    policy.accrue(1800.0)
    assert policy.choose(1800.0).jobs[0].project.name == "A"
    policy.accrue(HOUR)
    assert policy.choose(HOUR).jobs[0].project.name == "B"


def test_the_simulation_tells_idle_instances_saturation_and_shortfall() -> None:
    # 4 CPUs; 3 jobs of 2 hours and one of 5, horizon 6 hours: busy up to 2 hours; short by 3 x 4 + 1 = 13 hours,
    # as in the document's drawing.
    jobs = (
        *start_jobs("A", "a", 3, hours=2.0, deadline_hours=500.0),
        *start_jobs("A", "a", 1, hours=5.0, deadline_hours=500.0),
    )
    scenario = Scenario(Host((Processor(CPU, 4, 1e9),)), (Project("A", 1, (app("a"),)),), jobs=jobs)
    client, _ = with_jobs(scenario)
    assert forecast_of(ranked_by(client, {0: 0.0}, {0: 0.0}), 0.0, 6 * HOUR) == ([0.0], [2 * HOUR], [13 * HOUR])


def test_too_few_jobs_leave_instances_idle_now() -> None:
    jobs = start_jobs("A", "a", 1, hours=2.0, deadline_hours=500.0)
    scenario = Scenario(Host((Processor(CPU, 4, 1e9),)), (Project("A", 1, (app("a"),)),), jobs=jobs)
    policy = ranked_by(with_jobs(scenario)[0], {0: 0.0}, {0: 0.0})
    assert forecast_of(policy, 0.0, 3 * HOUR) == ([3.0], [0.0], [3 * 3 * HOUR + HOUR])


def test_busy_time_is_that_of_the_missed_jobs_by_deadline() -> None:
    # 2 CPUs; three jobs of 4 hours, all due in 3: all are missed. Assigned by deadline: 8 and 4 hours; all instances
    # are busy with them for 4 hours.
    jobs = start_jobs("A", "a", 3, hours=4.0, deadline_hours=3.0)
    scenario = Scenario(Host((Processor(CPU, 2, 1e9),)), (Project("A", 1, (app("a"),)),), jobs=jobs)
    policy = ranked_by(with_jobs(scenario)[0], {0: 0.0}, {0: 0.0})
    assert [len(missed) for missed in late_jobs(policy, 0.0)] == [3]
    assert busy_secs(policy, 0.0) == [4 * HOUR]


def test_jobs_of_which_one_runs_at_a_time_do_not_keep_all_cpus_busy() -> None:
    # The same, of an application of which one job may run at once: one CPU is idle. Beside an hour's job of another
    # application, both are busy for that hour.
    limited = replace(app("a"), max_concurrent=1)
    late = start_jobs("A", "a", 3, hours=4.0, deadline_hours=3.0)
    for others, expected in ((), 0.0), (start_jobs("A", "b", 1, hours=1.0, deadline_hours=0.5), HOUR):
        project = Project("A", 1, (limited, app("b")))
        scenario = Scenario(Host((Processor(CPU, 2, 1e9),)), (project,), jobs=(*late, *others))
        policy = ranked_by(with_jobs(scenario)[0], {0: 0.0}, {0: 0.0})
        assert busy_secs(policy, 0.0) == [expected]


@pytest.mark.parametrize(("days", "expected"), [(10.0, 100.0), (20.0, 150.0), (200.0, 200.0)])
def test_rec_tends_to_200_per_gflops_with_its_half_life(days: float, expected: float) -> None:
    # One CPU of 1 GFLOPS kept busy: 200 * (1 - 2^(-days/10)) credit a day.
    scenario = Scenario(
        Host((Processor(CPU, 1, 1e9),)), (Project("A", 1, (app("a", latency_hours=5000.0),)),), Preferences()
    )
    result = run(scenario, Rec(), days)
    assert result.timeline is not None
    last = result.timeline.levels.standing[0][-1]
    at_days = result.timeline.levels.at_secs[-1] / 86400
    assert last == pytest.approx(200 * (1 - 2 ** (-at_days / 10)), rel=1e-6)
    assert last == pytest.approx(expected, rel=0.01)
