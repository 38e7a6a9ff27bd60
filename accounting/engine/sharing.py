"""Share a machine's allowance among its projects (accounting rules, rules 6 and 7).

What the allowance covers is credited, the same fraction for all projects; the rest waits. What is then left of the
allowance pays waiting work. Waiting work beyond one day of the machine's is dropped, and the owner is told.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from accounting.engine.amounts import KINDS, NO_WORK, Totals
from accounting.engine.machine import DAY_US, SECOND_US, Allowance, allowance
from accounting.engine.states import DayFlag, Intake, NoteKind, ProjectState, ReportNote

PENDING_KEPT_US: Final = DAY_US
# Credit and run time; jobs are credited at once or dropped.
_KINDS_THAT_WAIT: Final = KINDS[:4]


def distribute(intake: Intake, level: Allowance) -> tuple[Allowance, dict[int, Totals]]:
    """Credit what the level covers (accounting rules, rules 6 and 7). Return what is left of it, and the credit."""
    left = _all_covered(intake, level)
    if left is None:
        return _distribute_scarce(intake, level)
    rows = intake.rows
    for project_id, delta in intake.deltas.items():
        # _take_reports made this row for this request alone, so it may be changed in place.
        rows[project_id].credited = rows[project_id].credited.plus(delta)
    return left, intake.deltas


def _all_covered(intake: Intake, level: Allowance) -> Allowance | None:
    """Return what is left if the level covers everything and nothing waits, as nearly always; else None."""
    for row in intake.rows.values():
        if row.pending != NO_WORK:
            return None
    if not intake.deltas:
        return level
    cpu_time, gpu_time, cpu_ec, gpu_ec, jobs = level
    for delta in intake.deltas.values():
        cpu_ec -= delta.cpu_ec
        gpu_ec -= delta.gpu_ec
        cpu_time -= delta.cpu_time
        gpu_time -= delta.gpu_time
        jobs -= delta.njobs * SECOND_US
    left = Allowance(cpu_time, gpu_time, cpu_ec, gpu_ec, jobs)
    return left if min(left) >= 0 else None


def _distribute_scarce(intake: Intake, level: Allowance) -> tuple[Allowance, dict[int, Totals]]:
    """Apply rules 6 and 7 in full, kind by kind, to the projects with new or waiting work."""
    ids = [i for i, row in intake.rows.items() if row.pending != NO_WORK or i in intake.deltas]
    day = allowance(intake.capacity, PENDING_KEPT_US)
    left = level._asdict()
    splits = []
    for kind in _KINDS_THAT_WAIT:
        deltas = [getattr(intake.deltas.get(i, NO_WORK), kind) for i in ids]
        waiting = [getattr(intake.rows[i].pending, kind) for i in ids]
        split = _split(deltas, waiting, left[kind], getattr(day, kind))
        left[kind] -= sum(split.credited)
        splits.append(split)
    success = [intake.deltas.get(i, NO_WORK).njobs_success for i in ids]
    error = [intake.deltas.get(i, NO_WORK).njobs_error for i in ids]
    jobs = _split_jobs(success, error, level.jobs // SECOND_US)
    left["jobs"] -= SECOND_US * sum(sum(split.credited) for split in jobs)
    splits += jobs
    credits = _apply(intake, ids, splits)
    return Allowance(**left), credits


@dataclass(slots=True)
class _Split:
    """How one kind's amounts are split, a number per project; ``late`` is the credited part that had been waiting."""

    credited: list[int]
    pending: list[int]
    dropped: list[int]
    late: list[int]


def _split(deltas: list[int], waiting: list[int], level: int, most_pending: int) -> _Split:
    """Credit new amounts, then pay waiting ones, then drop what waits beyond a day's work."""
    if not any(deltas) and not any(waiting):
        return _Split(deltas, waiting, waiting, waiting)  # all zero, as with the GPU's kinds on most hosts
    credited = _fit(deltas, level)
    pending = [old + new - paid for old, new, paid in zip(waiting, deltas, credited, strict=True)]
    late = _scaled(pending, level - sum(credited))
    pending = [amount - paid for amount, paid in zip(pending, late, strict=True)]
    pending_kept = _fit(pending, most_pending)
    return _Split(
        [now + later for now, later in zip(credited, late, strict=True)],
        pending_kept,
        [amount - rest for amount, rest in zip(pending, pending_kept, strict=True)],
        [min(old, paid) for old, paid in zip(waiting, late, strict=True)],
    )


def _split_jobs(success: list[int], error: list[int], most: int) -> list[_Split]:
    """Split both kinds of jobs, which share an allowance; a project's part is split in the proportion of its jobs. Jobs
    never wait.
    """
    jobs = [good + bad for good, bad in zip(success, error, strict=True)]
    credited = _fit(jobs, most)
    good = [part * g // all_ if all_ else 0 for part, g, all_ in zip(credited, success, jobs, strict=True)]
    bad = [part - g for part, g in zip(credited, good, strict=True)]
    none = [0] * len(jobs)
    return [
        _Split(good, none, [want - got for want, got in zip(success, good, strict=True)], none),
        _Split(bad, none, [want - got for want, got in zip(error, bad, strict=True)], none),
    ]


def _fit(amounts: list[int], limit: int) -> list[int]:
    """Cap each amount at the limit, then scale all of them so that their sum is within it.

    Capping first means that one insane claim takes at most half from a single honest project beside it.
    """
    return _scaled([min(amount, limit) for amount in amounts], limit)


def _scaled(amounts: list[int], limit: int) -> list[int]:
    """Return the amounts if their sum is within the limit, else their proportional parts of it, rounded down."""
    total = sum(amounts)
    if total <= limit:
        return amounts
    return [amount * limit // total for amount in amounts]


def _apply(intake: Intake, ids: list[int], splits: list[_Split]) -> dict[int, Totals]:
    """Write the outcome into the rows, marks and notes; return the credit of each project that got some."""
    credits = {}
    columns = zip(
        ids,
        _by_project([split.credited for split in splits]),
        _by_project([split.pending for split in splits]),
        _by_project([split.dropped for split in splits]),
        _by_project([split.late for split in splits]),
        strict=True,
    )
    for project_id, credited, pending, dropped, late in columns:
        row = intake.rows[project_id]
        if credited != NO_WORK:
            credits[project_id] = credited
        if late != NO_WORK:
            intake.flag(project_id, DayFlag.PENDING_PAID)
        if dropped != NO_WORK or max(pending.minus(row.pending)) > 0:
            intake.flag(project_id, DayFlag.CAPPED)
        intake.rows[project_id] = ProjectState(
            project_id,
            row.reported,
            row.earlier,
            row.credited.plus(credited),
            pending,
            row.dropped.plus(dropped) if dropped != NO_WORK else row.dropped,
            row.handed,
            row.listed,
            row.restart,
            row.broken,
        )
    for kind, split in zip(KINDS, splits, strict=True):
        lost = sum(split.dropped)
        if lost:
            intake.notes.append(ReportNote(NoteKind.DROPPED, None, kind, lost, kind))
    return credits


def _by_project(by_kind: list[list[int]]) -> list[Totals]:
    """Turn six lists with a number per project into a total per project."""
    return [Totals._make(amounts) for amounts in zip(*by_kind, strict=True)]
