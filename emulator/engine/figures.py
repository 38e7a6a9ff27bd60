"""The figures of merit of a finished run (emulator document, sections 9 and 15).

With P_k the counted FLOPS of an instance of kind k, n_k their number and T_k the time in which the kind was able
to compute: total = sum of P_k n_k T_k. Shares, and the number of projects, are weighted by the time for which they
held (emulator.engine.entitlements).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from emulator.engine.client import Client
from emulator.engine.entitlements import Entitlements
from emulator.engine.state import ProjectState
from emulator.engine.timeline.results import Figures, ProjectResult


@dataclass(frozen=True, slots=True)
class RunTotals:
    """Totals of a run that are not per project."""

    client: Client
    entitlements: Entitlements
    duration_secs: float
    rpcs: int
    sent: int


def figures_of_merit(run: RunTotals) -> tuple[Figures, tuple[ProjectResult, ...]]:
    """The figures of merit, and the work of each project."""
    projects = run.client.all_projects
    total = run.entitlements.capacity_flop
    used = math.fsum([project.used_flop for project in projects])
    aims = run.entitlements.aims
    got = [project.used_flop / used if used else 0.0 for project in projects]
    violation = math.fsum([abs(g - aim) for g, aim in zip(got, aims, strict=True)]) if used else 0.0
    figures = Figures(
        wasted=sum(project.wasted_flop for project in projects) / total if total else 0.0,
        idle=max(0.0, total - used) / total if total else 0.0,
        share_violation=violation,
        share_violation_normalised=normalised(violation, aims, run.entitlements.entitled_secs),
        monotony=_monotony(run),
        rpcs_per_job=run.rpcs / (2 * run.sent) if run.sent else 0.0,
    )
    rows = [_row(project, aim, g) for project, aim, g in zip(projects, aims, got, strict=True)]
    return figures, tuple(rows)


def normalised(violation: float, aims: list[float], entitled_secs: list[float]) -> float:
    """A share violation as a fraction of the largest possible one: all work for the project with the smallest aim,
    among those that were entitled to any time.
    """
    least = min((aim for aim, secs in zip(aims, entitled_secs, strict=True) if secs > 0), default=1.0)
    return violation / (2 * (1 - least)) if least < 1 else 0.0


def _monotony(run: RunTotals) -> float:
    """x / (1 + x), x = sum of S_p / (n * n * period), S_p^2 = mean of (time since p last ran)^2.

    Each project counts by the part of the run in which it was entitled to run.
    """
    spread = number = 0.0
    for project, secs in zip(run.client.all_projects, run.entitlements.entitled_secs, strict=True):
        if secs <= 0.0:
            continue
        cubes = project.gap_cubes
        if project.attached and not project.suspended and not project.running:
            cubes += (run.duration_secs - project.gap_from_secs) ** 3
        part = secs / run.duration_secs
        spread += part * math.sqrt(cubes / 3 / secs)
        number += part
    x = spread / (number * number * run.client.period_secs) if number else 0.0
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
