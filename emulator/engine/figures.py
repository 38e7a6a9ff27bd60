"""The figures of merit of a finished run (emulator document, sections 9 and 15).

With P_k the counted FLOPS of an instance of kind k, n_k their number and T_k the time in which the kind was able
to compute: total = sum of P_k n_k T_k.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from emulator.engine.client import Client
from emulator.engine.state import ProjectState
from emulator.engine.timeline.results import Figures, ProjectResult


@dataclass(frozen=True, slots=True)
class RunTotals:
    """The totals of a run that its projects do not hold. `able_flop`: the counted FLOP that it was able to do."""

    client: Client
    duration_secs: float
    able_flop: float
    rpcs: int
    sent: int


def figures_of_merit(run: RunTotals) -> tuple[Figures, tuple[ProjectResult, ...]]:
    """The figures of merit, and the work of each project."""
    client = run.client
    projects = client.all_projects
    total = run.able_flop
    used = sum(project.used_flop for project in projects)
    shares = _fractions([project.share if project.attached else 0.0 for project in projects])
    got = _fractions([project.used_flop for project in projects])
    violation = sum(abs(g - s) for g, s in zip(got, shares, strict=True)) if used else 0.0
    least = min(share for project, share in zip(projects, shares, strict=True) if project.attached or not any(shares))
    figures = Figures(
        wasted=sum(project.wasted_flop for project in projects) / total if total else 0.0,
        idle=max(0.0, total - used) / total if total else 0.0,
        share_violation=violation,
        share_violation_normalised=violation / (2 * (1 - least)) if least < 1 else 0.0,
        monotony=_monotony(projects, run.duration_secs, client.period_secs),
        rpcs_per_job=run.rpcs / (2 * run.sent) if run.sent else 0.0,
    )
    rows = [_row(project, s, g) for project, s, g in zip(projects, shares, got, strict=True)]
    return figures, tuple(rows)


def _fractions(parts: list[float]) -> list[float]:
    total = math.fsum(parts)
    return [part / total if total else 0.0 for part in parts]


def _monotony(projects: list[ProjectState], duration_secs: float, period_secs: float) -> float:
    """x / (1 + x), x = sum of S_p / (n * n * period), S_p^2 = mean of (time since p last ran)^2."""
    spread = 0.0
    for project in projects:
        cubes = project.gap_cubes
        if not project.running:
            cubes += (duration_secs - project.gap_from_secs) ** 3
        spread += math.sqrt(cubes / 3 / duration_secs)
    x = spread / (len(projects) ** 2 * period_secs)
    return x / (1 + x)


def _row(project: ProjectState, share: float, got: float) -> ProjectResult:
    return ProjectResult(
        name=project.name,
        share=share,
        got_fraction=got,
        used_flop=project.used_flop,
        wasted_flop=project.wasted_flop,
        instance_secs=tuple(project.instance_secs),
        jobs=project.met + project.late,
        met=project.met,
        late=project.late,
        sent=project.sent,
        rpcs=project.rpcs,
        failed=project.failed,
    )
