"""One host's ledger over many requests, without a database: what the ledger's tests drive ``settle`` with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from accounting.engine.amounts import NO_WORK, Totals
from accounting.engine.ledger import offer, settle
from accounting.engine.machine import Ceilings, Machine
from accounting.engine.states import HostState, LedgerChanges, ProjectState, Report, ReportNote

MICRO = 1_000_000
HOUR = 3_600
DAY = 86_400
# Midnight UTC: tests count seconds from here.
START_US = 1_767_225_600 * MICRO  # 2026-01-01

# At 4.32 GFLOPS a CPU earns 4.32e9 / 432e9 = 0.01 credits a second: 36 an hour, 864 a day.
ONE_CPU = Machine(1, 4_320_000_000)
# The same with a GPU of 21.6 TFLOPS, which earns 0.2 * 21.6e12 / 432e9 = 10 credits a second.
WITH_GPU = Machine(1, 4_320_000_000, ((1, 21_600_000_000_000),))


def totals(
    *,
    cpu_secs: float = 0,
    cpu_ec: float | None = None,
    gpu_secs: float = 0,
    gpu_ec: float | None = None,
    done: int = 0,
    failed: int = 0,
) -> Totals:
    """Totals in seconds, credits and jobs; credit is what ``WITH_GPU`` earns in the time if not given."""
    cpu_ec = cpu_secs / 100 if cpu_ec is None else cpu_ec
    gpu_ec = gpu_secs * 10 if gpu_ec is None else gpu_ec
    micro = [round(amount * MICRO) for amount in (cpu_ec, gpu_ec, cpu_secs, gpu_secs)]
    return Totals(micro[0], micro[1], micro[2], micro[3], done, failed)


class Books:
    """A host and its rows; each request is settled upon what the one before left, and each reply offers."""

    def __init__(self, machine: Machine | None = ONE_CPU, *, honours_handed: bool = False) -> None:
        self.machine = machine
        self.honours_handed = honours_handed
        self.host = HostState()
        self.rows: dict[int, ProjectState] = {}
        self.notes: list[ReportNote] = []
        self.days: dict[int, Totals] = {}

    def rpc(
        self,
        at_secs: float,
        listed: Mapping[int, Totals | None] | Iterable[Report] = (),
        *,
        offers: Iterable[int] = (),
        new: Machine | None = None,
        client_now: float | None = None,
        same: bool = True,
        own_last_at_secs: float | None = None,
    ) -> LedgerChanges:
        """A request ``at_secs`` after the start that lists projects with totals or without (None), or reports.

        The reply offers the projects in ``offers`` that the request did not list. ``same``: it is the client whose
        totals are in the books, which last reported at ``own_last_at_secs`` if another one has reported since.
        """
        reports = [Report(*line) for line in listed.items()] if isinstance(listed, Mapping) else list(listed)
        now_us = START_US + round(at_secs * MICRO)
        settlement = settle(
            self.host,
            self.rows,
            reports,
            now_us=now_us,
            client_now=client_now,
            old=self.machine,
            new=new or self.machine,
            is_same_client=same,
            own_last_at_us=None if own_last_at_secs is None else START_US + round(own_last_at_secs * MICRO),
            honours_handed=self.honours_handed,
            ceilings=Ceilings(),
        )
        self.host = settlement.host
        self.machine = new or self.machine
        self.rows |= {row.project_id: row for row in settlement.changed}
        self.notes += settlement.notes
        day = int(at_secs // DAY)
        for credit in settlement.credits.values():
            self.days[day] = self.days.get(day, NO_WORK).plus(credit)
        for i in set(offers) - {report.project_id for report in reports}:
            self.rows[i] = offer(self.rows.get(i), i)
        return settlement

    def attach(self, *projects: int, at_secs: float = 0) -> None:
        """A computer's first request, which lists nothing, and our reply with these projects."""
        self.rpc(at_secs, offers=projects)

    def row(self, project_id: int) -> ProjectState:
        return self.rows[project_id]

    @property
    def credited(self) -> Totals:
        """What the host was credited at all projects together."""
        amounts = NO_WORK
        for row in self.rows.values():
            amounts = amounts.plus(row.credited)
        return amounts

    def kinds_noted(self) -> list[str]:
        return [note.kind.value for note in self.notes]


def books_after_ten_hours() -> Books:
    """A host that has reported 10 hours of work for project 1, and has no allowance left."""
    books = Books()
    books.attach(1)
    books.rpc(10 * HOUR, {1: totals(cpu_secs=36_000)}, client_now=1_000.0)
    return books
