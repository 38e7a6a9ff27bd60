"""Determine when a volunteer met a badge's rule. Pure: facts by days and months in, days out.

Each rule counts something that never decreases as days pass. A badge is dated by the first day on which the count
reached the rule's threshold. A month's sums show in which month that was, and that month's days show on which day: so
the days of all other months are never read.

Amounts are those of the ledger: whole numbers of 1e-6 credits, 1e-6 seconds of run time (times the processors used),
and plain counts of tasks.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from accounting.engine.amounts import Totals

MAX_THRESHOLD: Final = 10**12
"""The largest threshold of a rule, in the unit of its kind."""
_MICRO: Final = 1_000_000
_HOUR: Final = 3600 * _MICRO


class BadgeKind(StrEnum):
    """What a rule counts, and in which unit."""

    CREDIT = "credit"
    """Estimated credit, in credits."""
    TASKS = "tasks"
    """Tasks that ended successfully."""
    DAYS = "days"
    """Days with credit."""
    YEARS = "years"
    """Calendar years with credit."""
    GPU_HOURS = "gpu_hours"
    """Run time on GPUs, in hours."""
    SUBJECT_HOURS = "subject_hours"
    """Run time for projects of a subject, in hours."""
    SUBJECTS = "subjects"
    """Fields of science for whose projects there was credit."""
    BEFORE_MOVE = "before_move"
    """Nothing: volunteers who had it on the previous site have it here, and nobody else gets it."""


@dataclass(frozen=True, slots=True)
class BadgeRule:
    """``subject``: the keyword's number, for SUBJECT_HOURS."""

    kind: BadgeKind
    threshold: int
    subject: int | None = None


@dataclass(frozen=True, slots=True)
class WorkStep:
    """The work of a day or of a month that begins on ``start``, by project. ``active_days``: its days with credit."""

    start: dt.date
    active_days: int
    by_project: Mapping[int, Totals]


@dataclass(frozen=True, slots=True)
class ProjectSubjects:
    """A project's subjects: all keywords with all their parents, and its fields of science."""

    keywords: frozenset[int] = frozenset()
    fields: frozenset[int] = frozenset()


_NO_SUBJECTS: Final = ProjectSubjects()
Subjects = Mapping[int, ProjectSubjects]


@dataclass(slots=True)
class _Count:
    """A rule's progress: ``amount`` in the smallest unit, or the different things seen."""

    rule: BadgeRule
    subjects: Subjects
    amount: int = 0
    seen: set[int] = field(default_factory=set)

    def add(self, step: WorkStep) -> None:
        kind = self.rule.kind
        if kind is BadgeKind.BEFORE_MOVE:
            return
        if kind is BadgeKind.DAYS:
            self.amount += step.active_days
            return
        for project, work in step.by_project.items():
            about = self.subjects.get(project, _NO_SUBJECTS)
            if kind is BadgeKind.CREDIT:
                self.amount += work.credit
            elif kind is BadgeKind.TASKS:
                self.amount += work.njobs_success
            elif kind is BadgeKind.GPU_HOURS:
                self.amount += work.gpu_time
            elif kind is BadgeKind.SUBJECT_HOURS:
                self.amount += work.run_time if self.rule.subject in about.keywords else 0
            elif work.credit > 0:
                self.seen |= {step.start.year} if kind is BadgeKind.YEARS else about.fields

    @property
    def is_reached(self) -> bool:
        return self.amount + len(self.seen) >= self.rule.threshold * _UNITS.get(self.rule.kind, 1)


_UNITS: Final = {BadgeKind.CREDIT: _MICRO, BadgeKind.GPU_HOURS: _HOUR, BadgeKind.SUBJECT_HOURS: _HOUR}


def reached_in(rule: BadgeRule, steps: Iterable[WorkStep], subjects: Subjects) -> dt.date | None:
    """Return the start of the step in which the rule's threshold was reached; None if it was not. Steps may be in any
    order.

    Steps must not overlap.
    """
    count = _Count(rule, subjects)
    for step in sorted(steps, key=lambda candidate: candidate.start):
        count.add(step)
        if count.is_reached:
            return step.start
    return None


def reached_on(
    rule: BadgeRule, months: Iterable[WorkStep], month: dt.date, days: Iterable[WorkStep], subjects: Subjects
) -> dt.date:
    """Return the day in ``month``, in which `reached_in` found the threshold to be reached, by the days of that month.

    Returns the first day of ``month`` if the days do not confirm it after all.
    """
    before = [step for step in months if step.start < month]
    return reached_in(rule, [*before, *days], subjects) or month
