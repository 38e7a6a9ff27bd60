"""An emulation goes on from what a client has at the start: jobs in progress, deadlines, back-offs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.engine.policies.names import PolicyName
from emulator.engine.policies.registry import make_policy
from emulator.engine.quirks import BOINC
from emulator.engine.run import Emulation, run
from emulator.engine.scenario import (
    CPU,
    App,
    Backoffs,
    Host,
    Normal,
    Preferences,
    Processor,
    Project,
    Scenario,
    ScenarioError,
    StartJob,
    StartState,
    Version,
)
from emulator.engine.timeline.reasons import Reason
from emulator.engine.timeline.results import Result
from tests.support.emulated_state import present_state

HOUR = 3600.0
DAY = 86400.0
APP = App("a", (Version(1e9),), Normal(1e9 * HOUR), Normal(1e9 * HOUR), 7 * DAY)


def scenario(*jobs: StartJob, cpus: int = 1, **project: Any) -> Scenario:
    """A computer with CPUs of 1 GFLOPS and one project of jobs of an hour that sends no new ones."""
    known = Project("A", 100, (APP,), **{"has_work": False, **project})
    return Scenario(Host((Processor(CPU, cpus, 1e9),)), (known,), jobs=jobs)


def job(
    state: StartState = StartState.NEW,
    done_fraction: float = 0.0,
    deadline_secs: float = DAY,
    received_secs: float = 0.0,
    finished_secs: float = 0.0,
) -> StartJob:
    """A job of an hour with a deadline in a day."""
    size = 1e9 * HOUR
    return StartJob("A", "a", size, size, deadline_secs, 0, state, done_fraction, received_secs, finished_secs)


def outcome(what: Scenario, policy: str = PolicyName.REC, days: float = 2) -> Result:
    return run(what, make_policy(policy, what, {}), days, 1)


def blocks(result: Result) -> list[tuple[int, int, int]]:
    """Job, start and end of each stretch of running, in whole seconds."""
    assert result.timeline is not None
    rows = result.timeline.blocks
    return [
        (job, round(start), round(end))
        for job, start, end in zip(rows.job, rows.start_secs, rows.end_secs, strict=True)
    ]


@pytest.mark.parametrize("policy", PolicyName)
def test_a_job_in_progress_goes_on_from_where_it_was(policy: str) -> None:
    # 90 % of an hour are done: 6 minutes are left, then the new job runs.
    result = outcome(scenario(job(), job(StartState.RUNNING, 0.9)), policy)
    assert blocks(result) == [(1, 0, 360), (0, 360, 360 + 3600)]
    assert result.projects[0].used_flop == pytest.approx(1.1e9 * HOUR)  # what was done before is not counted


@pytest.mark.parametrize("state", [StartState.BEGUN, StartState.RUNNING])
def test_a_job_that_ran_comes_before_one_that_is_new(state: StartState) -> None:
    assert blocks(outcome(scenario(job(), job(state, 0.5))))[0] == (1, 0, 1800)


def test_running_jobs_keep_their_place_and_say_why() -> None:
    # Of three that were running two fit now; the new job waits.
    ran = job(StartState.RUNNING, 0.5)
    result = outcome(scenario(job(), ran, ran, ran, cpus=2))
    reasons = [Reason(reason) for reason in result.decisions.reason]
    assert reasons[:2] == [Reason.WAS_RUNNING] * 2
    assert {number for number, start, _ in blocks(result) if start == 0} == {1, 2}


def test_a_running_job_keeps_the_processor_for_a_time_slice() -> None:
    # B has done nothing and A much, so B would come first; but A's job is in the middle of its slice.
    a = replace(scenario().projects[0], share=100)
    b = replace(a, name="B")
    a = replace(a, standing=replace(a.standing, rec=1000))
    jobs = (
        StartJob("A", "a", 1e9 * 10 * HOUR, 1e9 * 10 * HOUR, 9 * DAY, 0, StartState.RUNNING, 0.1),
        StartJob("B", "a", 1e9 * 10 * HOUR, 1e9 * 10 * HOUR, 9 * DAY),
    )
    what = Scenario(Host((Processor(CPU, 1, 1e9),)), (a, b), jobs=jobs, preferences=Preferences(period_secs=1800))
    assert blocks(outcome(what))[:2] == [(0, 0, 1800), (1, 1800, 37_800)]


def test_a_suspended_job_does_not_run_and_its_project_is_not_asked() -> None:
    result = outcome(scenario(job(StartState.SUSPENDED, 0.5), job(), has_work=True))
    assert [number for number, _, _ in blocks(result)] == [0]
    assert (result.projects[0].jobs, result.projects[0].rpcs) == (1, 1)  # it reports the other one


@pytest.mark.parametrize(
    ("finished_secs", "deadline_secs", "reported_secs"),
    # Reported two hours after the end, or a day before the deadline if that is sooner; at once if that is past.
    [(-1800, 9 * DAY, 1.5 * HOUR), (-3 * HOUR, 9 * DAY, 0), (-60, 1.02 * DAY, 0.02 * DAY), (-60, 1000, 0)],
)
def test_a_finished_job_is_reported(finished_secs: float, deadline_secs: float, reported_secs: float) -> None:
    done = job(StartState.FINISHED, 1.0, finished_secs=finished_secs, deadline_secs=deadline_secs)
    result = outcome(scenario(done, no_new_tasks=True))
    assert result.timeline is not None
    rpcs = result.timeline.rpcs
    assert list(rpcs.at_secs) == pytest.approx([reported_secs])
    assert list(rpcs.reported) == [1]
    assert result.projects[0].jobs == 0  # it was not computed in this run


def test_a_job_finished_before_the_start_counts_as_neither_met_nor_late() -> None:
    done = job(StartState.FINISHED, 1.0, finished_secs=-60, deadline_secs=-30)
    what = scenario(done)
    result = run(what, make_policy(PolicyName.REC, what, {}), 1, 1, BOINC)
    assert (result.projects[0].jobs, result.projects[0].late, result.figures.wasted) == (0, 0, 0)


def test_only_what_is_computed_in_the_run_is_wasted() -> None:
    # Half of an hour's job is done when the run begins and its deadline has passed: 1800 s of a day are wasted.
    result = outcome(scenario(job(StartState.RUNNING, 0.5, deadline_secs=-10)), days=1)
    assert result.projects[0].late == 1
    assert result.figures.wasted == pytest.approx(1800 / DAY)


def test_no_project_is_contacted_before_its_back_off_ends() -> None:
    def first_rpc(backoffs: Backoffs) -> float:
        result = outcome(scenario(has_work=True, backoffs=backoffs))
        assert result.timeline is not None
        return result.timeline.rpcs.at_secs[0]

    assert first_rpc(Backoffs()) == 0
    assert first_rpc(Backoffs(allowed_secs=500)) == 500
    assert first_rpc(Backoffs(kinds=((CPU, 700, 600),))) == 700
    assert first_rpc(Backoffs(kinds=(("NVIDIA", 700, 600),))) == 0  # of a processor that the computer does not have


def test_a_back_off_goes_on_growing() -> None:
    # The next interval is twice 4800 s, times 0.5 to 1.5.
    result = outcome(scenario(backoffs=Backoffs(kinds=((CPU, 700, 4800),))))
    assert result.timeline is not None
    first, second = result.timeline.rpcs.at_secs[:2]
    assert first == 700
    assert 700 + 4800 <= second <= 700 + 3 * 4800


def test_a_server_is_contacted_when_it_asked_for_it() -> None:
    result = outcome(scenario(no_new_tasks=True, backoffs=Backoffs(next_rpc_secs=5000)))
    assert result.timeline is not None
    assert list(result.timeline.rpcs.at_secs) == [5000]
    assert Reason.CONTACT_ASKED in result.decisions.reason


def test_a_project_is_not_asked_for_a_kind_that_its_owner_forbids() -> None:
    assert outcome(scenario(has_work=True, not_asked=(CPU,))).projects[0].rpcs == 0


@pytest.mark.parametrize(
    "wrong",
    [{"done_fraction": 1.1}, {"done_fraction": float("nan")}, {"received_secs": 1.0}, {"finished_secs": 1.0}],
)
def test_a_job_must_be_of_the_past(wrong: dict[str, Any]) -> None:
    with pytest.raises(ScenarioError):
        scenario(replace(job(), **wrong))


GPU_APP = App("g", (Version(2e9, 0.5, "NVIDIA", 1.0),), Normal(4e12), Normal(5e12), 4 * DAY)
PROJECTS = Scenario(
    Host((Processor(CPU, 2, 1e9), Processor("NVIDIA", 1, 1e10, 0.2))),
    (
        Project("A", 100, (APP,)),
        Project("B", 50, (App("b", (Version(1e9),), Normal(3e12), Normal(3.6e12), 3 * DAY),), request_delay_secs=120),
        Project("dry", 20, (APP,), has_work=False),
        Project("G", 40, (GPU_APP,)),
    ),
    Preferences(0.1, 0.3),
)


@settings(max_examples=15, deadline=None)
@given(st.floats(0.01, 5))
def test_an_exported_state_goes_on_as_the_emulation_it_was_taken_from(days: float) -> None:
    before = Emulation(PROJECTS, make_policy(PolicyName.REC, PROJECTS, {}), days, 1)
    before.result()
    exported = present_state(before, PROJECTS)
    after = Emulation(exported, make_policy(PolicyName.REC, exported, {}), 0.001, 1)
    # The same jobs, with the same time left and the same time until their deadlines; the same back-offs.
    now = days * DAY
    old, new = before._client, after._client
    for mine, theirs in zip(old.projects, new.projects, strict=True):
        for kind in range(len(old.kinds)):
            waiting, begun = mine.waiting[kind], sorted(mine.begun[kind], key=lambda job: job.id)
            assert [job.left_secs(now) for job in (*waiting, *begun)] == pytest.approx(
                [job.left_secs(0) for job in (*theirs.waiting[kind], *theirs.begun[kind])]
            )
            assert [job.deadline_secs - now for job in (*waiting, *begun)] == pytest.approx(
                [job.deadline_secs for job in (*theirs.waiting[kind], *theirs.begun[kind])]
            )
            assert max(0, mine.backoff_until_secs[kind] - now) == pytest.approx(theirs.backoff_until_secs[kind])
            assert mine.backoff_interval_secs[kind] == theirs.backoff_interval_secs[kind]
        assert len(mine.ready) == len(theirs.ready)
        assert max(0, mine.rpc_allowed_secs - now) == pytest.approx(theirs.rpc_allowed_secs)
        if mine.ready:
            assert mine.report_at_secs - now == pytest.approx(theirs.report_at_secs)
    for kind in range(len(old.kinds)):
        assert old.work_secs(kind, now) == pytest.approx(new.work_secs(kind, 0), abs=1e-3)


def test_the_parts_of_a_divided_emulation_make_the_whole() -> None:
    whole = outcome(PROJECTS, days=20)
    first = Emulation(PROJECTS, make_policy(PolicyName.REC, PROJECTS, {}), 10, 1)
    begun = first.result()
    exported = present_state(first, PROJECTS)
    rest = outcome(exported, days=10)
    for project in (0, 1, 3):
        used = begun.projects[project].used_flop + rest.projects[project].used_flop
        assert used == pytest.approx(whole.projects[project].used_flop, rel=0.02)
    assert rest.figures.idle < 1e-9
    assert sum(row.late for row in rest.projects) == 0
