"""The present state of an emulated client, as the scenario of another emulation."""

from __future__ import annotations

from dataclasses import replace

from emulator.engine.run import Emulation
from emulator.engine.scenario import Backoffs, Project, Scenario, Standing, StartJob, StartState
from emulator.engine.state import Job, ProjectState


def present_state(run: Emulation, scenario: Scenario) -> Scenario:
    """The scenario that goes on where a run has ended."""
    client, policy = run._client, run._policy
    now = run._duration_secs
    projects = [
        replace(_project(state, client.kinds, now), standing=Standing(rec=policy.standing(state, now)))
        for state in client.all_projects
    ]
    jobs = [job for state in client.all_projects for job in (*state.ready, *_unfinished(state))]
    jobs.sort(key=lambda job: job.id)
    return replace(scenario, projects=tuple(projects), jobs=tuple(_job(job, now) for job in jobs))


def _unfinished(state: ProjectState) -> list[Job]:
    return [job for kind in range(len(state.busy)) for job in (*state.begun[kind], *state.waiting[kind])]


def _project(state: ProjectState, kinds: tuple[str, ...], now: float) -> Project:
    def left(until_secs: float) -> float:
        return max(0.0, until_secs - now)

    waits = zip(kinds, state.backoff_until_secs, state.backoff_interval_secs, strict=True)
    backoffs = Backoffs(
        allowed_secs=left(state.rpc_allowed_secs),
        failures=state.failures,
        kinds=tuple((kind, left(until_secs), interval_secs) for kind, until_secs, interval_secs in waits),
    )
    return replace(state.project, backoffs=backoffs)


def _job(job: Job, now: float) -> StartJob:
    state = StartState.NEW
    if job.done:
        state = StartState.FINISHED
    elif job.running:
        state = StartState.RUNNING
    elif job.started:
        state = StartState.BEGUN
    offer = next(offer for offer in job.app.offers if offer.kind == job.kind)
    left = 0.0 if job.done else job.left - (now - job.settled_secs) * job.rate
    return StartJob(
        project=job.project.name,
        app=job.app.app.name,
        size_flop=job.size_secs * offer.flops,
        estimate_flop=job.estimate_secs * offer.flops,
        deadline_secs=job.deadline_secs - now,
        version=offer.number,
        state=state,
        done_fraction=1 - left / job.size_secs,
        received_secs=job.arrived_secs - now,
        finished_secs=job.end_secs - now if job.done else 0.0,
    )
