"""Late means not reported by the deadline, and each request is explained by what caused it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from emulator.engine.decisions import WorkRequest
from emulator.engine.events.contact import Contact
from emulator.engine.policies.rec import Rec
from emulator.engine.quirks import Quirks
from emulator.engine.run import run
from emulator.engine.scenario import (
    CPU,
    App,
    Availability,
    Host,
    Normal,
    Preferences,
    Processor,
    Project,
    Scenario,
    ServerUp,
    StartJob,
    Version,
)
from emulator.engine.state import ProjectState
from emulator.engine.timeline.reasons import Reason
from emulator.engine.timeline.results import DecisionKind, Result
from tests.support.emulated_client import OnObjects

HOUR = 3600.0


def one_job(*, hours: float, deadline_hours: float, server_down_hours: float = 0.0) -> Scenario:
    """A project with one job at the start, and a server that is down from the start for this long."""
    size = Normal(hours * HOUR * 1e9)
    project = Project("A", 1, (App("a", (Version(1e9),), size, size, 1000 * HOUR),), has_work=False)
    events = (ServerUp(0.0, "A", False), ServerUp(server_down_hours * HOUR, "A", True)) if server_down_hours else ()
    job = StartJob("A", "a", size.mean, size.mean, deadline_hours * HOUR)
    return Scenario(Host((Processor(CPU, 1, 1e9),)), (project,), jobs=(job,), events=events)


def ends(result: Result) -> list[Reason]:
    decisions = result.decisions
    return [Reason(r) for r, kind in zip(decisions.reason, decisions.kind, strict=True) if kind == DecisionKind.END]


@pytest.mark.parametrize(
    ("scenario", "met", "late", "reasons"),
    [
        (one_job(hours=2, deadline_hours=3), 1, 0, [Reason.JOB_MET]),
        (one_job(hours=2, deadline_hours=1), 0, 1, [Reason.JOB_LATE]),
        # Done after 2 of 3 hours, but the server is down for 6, or to the end.
        (one_job(hours=2, deadline_hours=3, server_down_hours=6), 0, 1, [Reason.JOB_MET, Reason.JOB_REPORTED_LATE]),
        (one_job(hours=2, deadline_hours=3, server_down_hours=500), 0, 1, [Reason.JOB_MET, Reason.JOB_UNREPORTED]),
        (one_job(hours=90, deadline_hours=3), 0, 1, [Reason.JOB_UNFINISHED]),
        # Neither: it may still be reported in time.
        (one_job(hours=90, deadline_hours=300), 0, 0, []),
    ],
)
def test_a_job_is_met_only_if_it_is_reported_by_its_deadline(
    scenario: Scenario, met: int, late: int, reasons: list[Reason]
) -> None:
    result = run(scenario, Rec(), 2.0)
    row = result.projects[0]
    assert (row.met, row.late, row.jobs) == (met, late, met + late)
    assert ends(result) == reasons
    # What was done for a late job is wasted: all of it here, of 48 hours.
    assert row.wasted_flop == (row.used_flop if late else 0.0)
    assert result.timeline is not None
    assert len(result.timeline.misses.at_secs) == late


def test_boincs_emulator_counts_only_what_is_reported() -> None:
    quirks = Quirks(wasted_when_reported=True)
    scenario = one_job(hours=2, deadline_hours=3, server_down_hours=500)
    row = run(scenario, Rec(), 2.0, quirks=quirks).projects[0]
    assert (row.met, row.late, row.wasted_flop) == (0, 0, 0.0)


def mixed() -> Scenario:
    """CPU and GPU jobs of three projects; the second has no CPU jobs, the third runs dry and is down at times."""
    cpu, gpu = Version(1e9), Version(2e9, 0.1, "NVIDIA", 1.0)

    def app(name: str, version: Version, hours: float) -> App:
        size = hours * HOUR * version.flops
        return App(name, (version,), Normal(size, 0.1 * size), Normal(size), 100 * HOUR)

    return Scenario(
        Host((Processor(CPU, 2, 1e9), Processor("NVIDIA", 1, 10e9, 0.2)), connected=Availability(0.8, 20 * HOUR)),
        (
            Project("A", 3, (app("a", cpu, 2.0), app("b", gpu, 1.0))),
            Project("B", 2, (app("c", gpu, 3.0),)),
            Project("C", 1, (app("d", cpu, 5.0), app("e", gpu, 2.0)), Availability(0.5, 10 * HOUR), has_work=False),
        ),
        Preferences(0.1, 0.3),
    )


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("down", [False, True])
def test_each_request_names_the_kind_that_caused_it(seed: int, down: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the moment of each RPC the kind is recounted from the client's jobs, without the policy's simulation."""
    asked: list[tuple[float, int, int, float]] = []
    contacted = Contact.rpc

    def rpc(self: Any, project: ProjectState, request: WorkRequest | None, now: float) -> None:
        if request is not None:
            client, kind = self._client, request.kind
            assert project.can_supply[kind]
            assert project.backoff_until_secs[kind] <= now
            assert client.can_ask(project, now)
            assert request.secs[kind] > 0
            jobs = [job for p in client.projects for job in (*p.begun[kind], *p.waiting[kind])]
            least_secs = client.buffer_min_secs if request.reason == Reason.FETCH_SATURATION else None
            horizon_secs = least_secs or client.buffer_total_secs
            # If all instances were busy to the horizon, so much work would be left, and more.
            work_secs = sum(job.left_secs(now) * job.usage for job in jobs)
            longest_secs = max((job.left_secs(now) for job in jobs), default=0.0)
            assert work_secs < client.instances[kind] * (horizon_secs + longest_secs) + 1.0
            asked.append((now, project.index, kind, request.secs[kind]))
        contacted(self, project, request, now)

    monkeypatch.setattr(Contact, "rpc", rpc)
    scenario = replace(mixed(), events=(ServerUp(2 * 86400.0, "A", False),)) if down else mixed()
    decisions = run(scenario, OnObjects(Rec()), 8.0, seed=seed).decisions
    named = [
        (at, project, processor, amount)
        for at, what, reason, project, processor, amount in zip(
            decisions.at_secs,
            decisions.kind,
            decisions.reason,
            decisions.project,
            decisions.processor,
            decisions.amount,
            strict=True,
        )
        if what == DecisionKind.ASK and reason in (Reason.FETCH_SATURATION, Reason.FETCH_ALONG)
    ]
    assert named == asked
    assert len({kind for _, _, kind, _ in asked}) == 2
