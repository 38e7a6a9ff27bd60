"""The ledger's vocabulary: the state of a host and its projects, a report, the settlement, flags and notes.

Amounts of a project are `amounts.Totals`. Our clock is in micro-seconds since 1970, a client's in seconds.
docs/explanation/accounting.md explains the terms.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntFlag, StrEnum
from typing import Final, NamedTuple

from accounting.engine.amounts import NO_WORK, Totals
from accounting.engine.machine import NO_ALLOWANCE, Allowance, Capacity

NO_KINDS: Final[frozenset[str]] = frozenset()


class DayFlag(IntFlag):
    """Bits that mark a day of a computer at a project. They are stored: a value never changes its meaning."""

    CAPPED = 1
    RESET = 2
    BASELINE = 4
    SPEED_UNKNOWN = 8
    RETURNED = 16
    PENDING_PAID = 32
    SUM_BROKEN = 64
    SEVERAL_GPUS = 128
    SPEED_REPLACED = 256
    SPANS_DAYS = 512


class NoteKind(StrEnum):
    """What an owner is told about a report (glossary in docs/explanation/accounting.md)."""

    INVALID = "invalid"
    BASELINE = "baseline"
    RESET = "reset"
    RETURNED = "returned"
    EC_ABOVE_TIME = "ec_above_time"
    SEVERAL_GPUS = "several_gpus"
    SPEED_REPLACED = "speed_replaced"
    DROPPED = "dropped"
    SUM_BROKEN = "sum_broken"
    SUM_RESTARTED = "sum_restarted"


@dataclass(frozen=True, slots=True)
class ReportNote:
    """Something for the owner to see.

    ``project_id`` is None if it is about the whole host. ``amount`` is what does not count, of the kind named by
    ``amount_kind`` (one of ``KINDS``); for a baseline, which has no kind, CPU and GPU credit together. ``detail`` is
    the same for notes that can be counted together.
    """

    kind: NoteKind
    project_id: int | None
    amount_kind: str | None = None
    amount: int = 0
    detail: str = ""


@dataclass(slots=True)
class HostState:
    """A host's part of the ledger: last report by our clock and by its own, and the allowance left."""

    last_at_us: int | None = None
    client_now: float | None = None
    level: Allowance = NO_ALLOWANCE


@dataclass(slots=True)
class ProjectState:
    """A host's totals at one project; the docstring of `accounting.engine.ledger` explains the fields."""

    project_id: int
    reported: Totals | None = None
    earlier: tuple[Totals, ...] = ()
    credited: Totals = NO_WORK
    pending: Totals = NO_WORK
    dropped: Totals = NO_WORK
    handed: Totals | None = None
    listed: bool = False
    restart: Totals | None = None
    broken: frozenset[str] = NO_KINDS


class Unreadable(NamedTuple):
    """One of the six totals that is not a usable number. ``is_lasting``: it is a sum containing nan or infinity."""

    kind: str
    fault: str
    is_lasting: bool = False


class Report(NamedTuple):
    """A request's report on one project: totals, or none (not every client sends them), or their fault.

    Totals that cannot be used are in ``unreadable``, and 0 in ``totals``.
    """

    project_id: int
    totals: Totals | None
    fault: str | None = None
    unreadable: tuple[Unreadable, ...] = ()


@dataclass(slots=True)
class LedgerChanges:
    """What a request changes: the host, the projects' rows that differ, and what to add to today's rows.

    ``credits`` has only projects that are credited something; ``flags`` may have others (a reset, for one).
    """

    stale: bool
    host: HostState
    changed: list[ProjectState] = field(default_factory=list)
    credits: dict[int, Totals] = field(default_factory=dict)
    flags: dict[int, int] = field(default_factory=dict)
    notes: list[ReportNote] = field(default_factory=list)


@dataclass(slots=True)
class Intake:
    """A request while it is being settled: its circumstances, and the results of rules 3 to 7 so far."""

    capacity: Capacity
    elapsed_us: int
    is_same_client: bool
    honours_handed: bool
    rows: dict[int, ProjectState]
    deltas: dict[int, Totals] = field(default_factory=dict)
    flags: dict[int, int] = field(default_factory=dict)
    notes: list[ReportNote] = field(default_factory=list)
    has_replaced_gpu: bool = False

    def flag(self, project_id: int, flag: DayFlag) -> None:
        self.flags[project_id] = self.flags.get(project_id, 0) | flag.value
