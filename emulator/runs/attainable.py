"""The least share violation that any schedule could have had, by linear programming. Pure.

A project without a program for a GPU, or whose server was down for a week, cannot get its share of them; no policy is
to blame for that. The bound knows the whole run in advance: it does the same amount of work as the run, and divides it
as close to the shares as possible. It ignores deadlines and the lengths of jobs.

Unknowns are the job-seconds of each kind of job in each stretch of the run (emulator.engine.timeline.stretches). While
a project's server gives no jobs, only those can run that the client had at the start, plus those of a work buffer that
was full when the spell without jobs began. Before a spell that begins with the run nothing could fill it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog
from scipy.sparse import coo_array

from emulator.engine.timeline.results import Figures, Result
from emulator.engine.timeline.stretches import Claim, Stretch

MAX_UNKNOWNS: Final = 50_000
MAX_SECS: Final = 20.0  # for each of the two programs
MIN_SECS: Final = 0.5
ROUNDING: Final = 1e-7

Floats = npt.NDArray[np.float64]


def figures_of_merit(result: Result, secs_left: float = math.inf) -> dict[str, float | None]:
    """Return all figures of merit as numbers by name: the engine's, the least attainable share violation, and the rest
    of the normalised one without it. The last two are None if they are too much work to calculate, also in the time
    that is left.
    """
    figures: dict[str, float | None] = {name: getattr(result.figures, name) for name in Figures.__slots__}
    least = least_violation(result, secs_left)
    violation = result.figures.share_violation
    avoidable = None
    if least is not None:
        avoidable = max(0.0, 1 - least / violation) * result.figures.share_violation_normalised if violation else 0.0
    return {**figures, "share_violation_least": least, "share_violation_avoidable": avoidable}


def least_violation(result: Result, secs_left: float = math.inf) -> float | None:
    """Return the least attainable share violation of a run, as `Figures.share_violation` counts, for the same amount of
    work; never more than it had. None if the problem has more than MAX_UNKNOWNS unknowns or takes too long.
    """
    unknowns = sum(len(claim.supplies) for stretch in result.stretches for claim in stretch.claims)
    if not unknowns:
        return 0.0
    # The first program is the easier one.
    secs_max = min(MAX_SECS, secs_left / 3)
    if unknowns > MAX_UNKNOWNS or secs_max < MIN_SECS:
        return None
    problem = _Problem.of(result.stretches, secs_max)
    most = problem.solve(-problem.flop)
    if most is None or most >= 0:
        return None if most is None else 0.0
    # The run's own work fits, except for rounding, and for jobs that it had when their speed changed.
    done = math.fsum([row.used_flop for row in result.projects]) / problem.unit_flop
    least = problem.least_distance([row.share for row in result.projects], min(-most, done)) if done else 0.0
    return None if least is None else min(least, result.figures.share_violation)


@dataclass(slots=True)
class _Rows:
    """Inequalities: the sum of some unknowns, each times a factor, is at most a limit."""

    row: list[int] = field(default_factory=list)
    column: list[int] = field(default_factory=list)
    factor: list[float] = field(default_factory=list)
    limit: list[float] = field(default_factory=list)

    def add(self, terms: Sequence[tuple[int, float]], limit: float) -> None:
        if not terms or not math.isfinite(limit):
            return
        for column, factor in terms:
            self.row.append(len(self.limit))
            self.column.append(column)
            self.factor.append(factor)
        self.limit.append(limit)


@dataclass(slots=True)
class _Problem:
    """The job-seconds of each supply in each stretch: counted FLOP per second, project, and the inequalities."""

    flop: Floats
    project: list[int]
    rows: _Rows
    unit_flop: float  # the unit of amounts of work
    secs_max: float  # for each program

    @classmethod
    def of(cls, stretches: Sequence[Stretch], secs_max: float) -> _Problem:
        flop: list[float] = []
        project: list[int] = []
        rows = _Rows()
        # Amounts are scaled so that the run's length is about 1: the solver's tolerances are absolute.
        scale = max((max(stretch.instance_secs) for stretch in stretches), default=1.0) or 1.0
        for stretch in stretches:
            uses: list[list[tuple[int, float]]] = [[] for _ in stretch.instance_secs]
            for claim in stretch.claims:
                own = len(flop)
                for number, supply in enumerate(claim.supplies):
                    flop.append(supply.counted_flops)
                    project.append(claim.project)
                    uses[supply.kind].append((own + number, supply.usage))
                    if supply.cpus:
                        uses[0].append((own + number, supply.cpus))
                for terms, limit in _limits(stretch, claim, own):
                    rows.add(terms, limit / scale)
            for terms, secs in zip(uses, stretch.instance_secs, strict=True):
                rows.add(terms, secs / scale)
        for terms, limit in _dry_limits(stretches):
            rows.add(terms, limit / scale)
        return cls(np.array(flop) / max(flop), project, rows, max(flop) * scale, secs_max)

    def solve(self, costs: Floats, extra: _Rows | None = None, unknowns: int = 0) -> float | None:
        """Return the least cost; None if the solver found none in time."""
        rows = extra or self.rows
        shape = (len(rows.limit), unknowns or len(self.flop))
        solution: Any = linprog(
            costs,
            A_ub=coo_array((rows.factor, (rows.row, rows.column)), shape=shape).tocsr(),
            b_ub=rows.limit,
            method="highs",
            options={"time_limit": self.secs_max},
        )
        return float(solution.fun) if solution.success else None

    def least_distance(self, aims: Sequence[float], most: float) -> float | None:
        """Return the least sum of the projects' distances from their aims, as fractions of the work, when this much is
        done.
        """
        number = len(self.flop)
        rows = _Rows(list(self.rows.row), list(self.rows.column), list(self.rows.factor), list(self.rows.limit))
        rows.add([(place, -flop) for place, flop in enumerate(self.flop)], -most * (1 - ROUNDING))
        rows.add(list(enumerate(self.flop)), most * (1 + ROUNDING))
        for index, aim in enumerate(aims):
            mine = [(place, flop) for place, flop in enumerate(self.flop) if self.project[place] == index]
            rows.add([*mine, (number + index, -1.0)], aim * most)
            rows.add([*((place, -flop) for place, flop in mine), (number + index, -1.0)], -aim * most)
        costs = np.concatenate([np.zeros(number), np.ones(len(aims))])
        distance = self.solve(costs, rows, number + len(aims))
        return None if distance is None else max(0.0, distance / most - 2 * ROUNDING)


def _limits(stretch: Stretch, claim: Claim, first: int) -> Iterator[tuple[list[tuple[int, float]], float]]:
    """Limit the jobs of one project in a stretch, apart from processors; its unknowns begin at `first`."""
    secs = max(stretch.able_secs)
    everything = [(first + number, 1.0) for number in range(len(claim.supplies))]
    yield everything, claim.most * secs
    apps = {supply.app: supply.most_of_app for supply in claim.supplies}
    for app, most in apps.items():
        yield [(first + n, 1.0) for n, supply in enumerate(claim.supplies) if supply.app == app], most * secs


@dataclass(slots=True)
class _Dry:
    """The jobs of one project for one kind of processor, in all stretches in which it gets no new ones: the work of
    each, that of the jobs at the start, and the buffer's content at the start of each spell.
    """

    start: float
    terms: list[tuple[int, float]] = field(default_factory=list)
    buffers: dict[int, float] = field(default_factory=dict)


def _dry_limits(stretches: Sequence[Stretch]) -> Iterator[tuple[list[tuple[int, float]], float]]:
    """Limit the jobs of projects that get no new ones, in each stretch and in all of them.

    Work is in instance-seconds of the fastest processor: the FLOP of a job stay the same when speeds change.
    """
    unit = max(max(stretch.instance_flops) for stretch in stretches)
    dry: dict[tuple[int, int], _Dry] = {}
    first = 0
    for stretch in stretches:
        able_secs = max(stretch.able_secs)
        for claim, spells in zip(stretch.claims, stretch.dry_spells, strict=True):
            for kind, flops in enumerate(stretch.instance_flops if claim.is_dry else ()):
                terms = [(first + n, s.usage * flops / unit) for n, s in enumerate(claim.supplies) if s.kind == kind]
                instances = stretch.instance_secs[kind] / able_secs if able_secs else 0.0
                buffered = stretch.buffer_secs * instances * flops / unit
                mine = dry.setdefault((claim.project, kind), _Dry(claim.start_flop[kind] / unit))
                mine.terms += terms
                mine.buffers |= {spell: max(buffered, mine.buffers.get(spell, 0.0)) for spell in spells}
                yield terms, mine.start + len(spells) * buffered
            first += len(claim.supplies)
    for span in dry.values():
        yield span.terms, span.start + sum(span.buffers.values())
