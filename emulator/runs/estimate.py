"""How long runs will take: before they are queued, from the scenario and earlier runs; while they run, from their
progress.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Final

from emulator.engine.policies.names import PolicyName
from emulator.engine.scenario import CPU, DAY_SECS, Project, Scenario
from emulator.models import Run, RunState

EARLIER_RUNS: Final = 100
"""The number of latest finished runs from which the time per job is estimated."""
START_SECS: Final = 0.6
"""Processor time of a process before it emulates the first job."""
LEAST_JOBS: Final = 100
"""A run with fewer says little about the time per job."""
LEAST_PROGRESS: Final = 0.02
# Without earlier runs: measured with the examples on an ordinary processor.
_SECS_PER_JOB: Final = {
    PolicyName.REC.value: 3e-5,
    PolicyName.LTD.value: 1e-4,
    PolicyName.LTD_SINGLE.value: 1e-4,
    PolicyName.DEBT.value: 6e-5,
}
_UNKNOWN_SECS_PER_JOB: Final = 1e-4


def expected_jobs(scenario: Scenario, days: float) -> float:
    """Estimate how many jobs the computer finishes if all processors are busy whenever they may compute.

    Each kind of processor is divided by the shares of the projects that have a program for it, and a project's part by
    the lengths of its jobs.
    """
    host = scenario.host
    jobs = 0.0
    for processor in host.processors:
        active = host.active if processor.kind == CPU else host.gpu_active
        secs = days * DAY_SECS * processor.instances * host.on.fraction * active.fraction
        lengths = [(project.share, _instance_secs(project, processor.kind)) for project in scenario.projects]
        both = [(share, length) for share, length in lengths if length]
        shares = sum(share for share, _length in both)
        if shares:
            jobs += sum(secs * share / shares / length for share, length in both)
    return jobs


def _instance_secs(project: Project, kind: str) -> float:
    """Return the mean instance-seconds of a project's jobs for a kind of processor; 0 if it has none."""
    lengths = [
        app.size.mean / version.flops * (version.gpus if version.gpu else version.cpus)
        for app in project.apps
        if not app.non_cpu_intensive
        for version in app.versions
        if version.kind == kind
    ]
    return sum(lengths) / len(lengths) if lengths else 0.0


def run_secs(policies: Sequence[str], jobs: float) -> list[float]:
    """Return the processor time (s) of a run with this many jobs under each policy. One statement."""
    by_policy = _secs_per_job(
        Run.objects.filter(state=RunState.DONE, policy__in=policies, cpu_secs__isnull=False)
        .order_by("-pk")
        .only("policy", "cpu_secs", "projects")[:EARLIER_RUNS]
    )
    return [
        START_SECS + jobs * by_policy.get(policy, _SECS_PER_JOB.get(policy, _UNKNOWN_SECS_PER_JOB))
        for policy in policies
    ]


def _secs_per_job(earlier: Iterable[Run]) -> dict[str, float]:
    rates = defaultdict(list)
    for run in earlier:
        jobs = sum(row["jobs"] for row in run.projects)
        if jobs >= LEAST_JOBS:
            rates[run.policy].append(max(0.0, (run.cpu_secs or 0.0) - START_SECS) / jobs)
    return {policy: median(secs) for policy, secs in rates.items()}


def remaining_secs(runs: Sequence[Run], now: dt.datetime) -> float | None:
    """Return the seconds until all runs are over, at their pace so far; None while that is unknown."""
    begun = [run.started_at for run in runs if run.started_at is not None]
    if not begun:
        return None
    over = (RunState.DONE, RunState.FAILED, RunState.CANCELLED)
    done = sum(1.0 if run.state in over else run.progress for run in runs)
    if done < LEAST_PROGRESS * len(runs):
        return None
    return (now - min(begun)).total_seconds() * (len(runs) - done) / done
