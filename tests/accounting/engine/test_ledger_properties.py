"""The ledger against a second implementation of its rules, over any sequence of requests, sensible or not.

After each request every number must agree with ``ReferenceHost``, and what the rules promise must hold: no
work is counted twice or lost, a machine gets no more than it can do, a repeated request changes no totals.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from accounting.engine.amounts import KINDS, NO_WORK, Processor, Totals
from accounting.engine.hardware_models import Usual
from accounting.engine.ledger import offer, settle
from accounting.engine.machine import Allowance, Ceilings, Machine
from accounting.engine.states import DayFlag, HostState, LedgerChanges, ProjectState, Report, Unreadable
from tests.support.reference_ledger import Hardware, ReferenceHost, Row

MICRO = 1_000_000
HOUR = 3_600
DAY = 86_400
START_US = 1_767_225_600 * MICRO + 123_457
PROJECTS = (1, 2, 3, 4)

HARDWARE: tuple[Hardware | None, ...] = (
    (4, 4_000_000_000, ()),
    (1, 1_000_000_000, ()),
    (8, 5_123_456_789, ((2, 9_876_543_210_987),)),
    (16, 7_000_000_001, ((1, 20_000_000_000_000), (3, 500_000_000_000), (1, 0))),
    (0, 0, ()),
    (5_000, 10**15, ((10**6, 10**18), (5, 10**12))),
    (-3, -5, ((-1, -7),)),
    None,
)

# Gaps between requests, in micro-seconds; clocks are also set back.
gaps = st.one_of(
    st.sampled_from([0, 1, 30, 60, HOUR - 1, HOUR, DAY // 2, DAY, 20 * DAY, 40 * DAY]).map(lambda s: s * MICRO),
    st.integers(0, 2 * DAY * MICRO),
    st.sampled_from([-1, -30 * MICRO, -HOUR * MICRO, -3 * DAY * MICRO]),
)

# How a project's totals go on from the last ones the client had.
times = st.one_of(st.just(0), st.integers(0, 200_000 * MICRO), st.sampled_from([60 * MICRO, 10**14, 10**20]))
credit = st.one_of(st.just(0), st.integers(0, 10**10), st.sampled_from([1, 2, 3, 10**20]))
counts = st.one_of(st.just(0), st.integers(0, 50), st.sampled_from([10**5, 2**31 - 1]))
growth = st.tuples(credit, credit, times, times, counts, counts)


@dataclass(frozen=True)
class Line:
    """What the client says of a project: ``how`` it comes by its totals from those it has or had."""

    project: int
    how: str
    amounts: Totals
    flops: int
    index: int
    unreadable: tuple[tuple[str, bool], ...] = ()


@dataclass(frozen=True)
class Step:
    """A request and our reply."""

    gap_us: int
    client_step: float | None
    is_same: bool
    silent_us: int | None
    honours: bool
    hardware: Hardware | None
    lines: list[Line]
    offers: list[int]
    usual: dict[str, int]


lines = st.builds(
    Line,
    st.sampled_from(PROJECTS),
    st.sampled_from(
        ["work", "work", "work", "multiplied", "any", "same", "restart", "earlier", "handed", "none", "fault"]
    ),
    growth,
    st.sampled_from([1_000_000_000, 4_000_000_000, 5_123_456_789]),
    st.integers(0, 5),
    st.one_of(
        st.just(()), st.just(()), st.lists(st.tuples(st.sampled_from(KINDS), st.booleans()), max_size=2).map(tuple)
    ),
)
steps = st.builds(
    Step,
    gaps,
    st.one_of(st.just(1.0), st.none(), st.sampled_from([0.0, -5.0, 1e300, math.nan, math.inf])),
    st.sampled_from([True, True, True, True, True, False]),
    st.one_of(st.none(), st.none(), st.integers(0, 2 * DAY * MICRO)),
    st.booleans(),
    st.sampled_from(HARDWARE),
    st.lists(lines, max_size=5),
    st.lists(st.sampled_from(PROJECTS), max_size=3),
    st.sampled_from([{}, {"cpu": 5_000_000_000, "gpu": 10**13}, {"cpu": 10**9 + 1}, {"gpu": 10**12}]),
)


def machine_of(hardware: Hardware | None) -> Machine | None:
    if hardware is None:
        return None
    ncpus, flops, gpus = hardware
    return Machine(ncpus, flops, tuple(gpus), "A CPU", ("A GPU",) * len(gpus))


def as_dict(totals: Totals | None) -> dict[str, int] | None:
    return None if totals is None else dict(zip(KINDS, totals, strict=True))


def plain(state: ProjectState) -> Row:
    """A row as the reference keeps it."""
    return Row(
        as_dict(state.reported),
        [dict(zip(KINDS, each, strict=True)) for each in state.earlier],
        as_dict(state.restart),
        dict(zip(KINDS, state.credited, strict=True)),
        dict(zip(KINDS, state.pending, strict=True)),
        dict(zip(KINDS, state.dropped, strict=True)),
        as_dict(state.handed),
        state.listed,
        set(state.broken),
    )


@dataclass
class Client:
    """A computer: its totals at each project, all that they ever were, and its clock."""

    totals: dict[int, list[Totals]] = field(default_factory=lambda: {i: [NO_WORK] for i in PROJECTS})
    clock: float = 1e9

    def tell(self, line: Line, rows: dict[int, ProjectState]) -> tuple[Totals | None, str | None]:
        """The totals and the fault that this line reports."""
        past = self.totals[line.project]
        last = past[-1]
        a = line.amounts
        if line.how == "none":
            return None, None
        if line.how == "fault":
            return None, f"total {line.index} is not a number"
        if line.how in ("work", "multiplied"):
            # Credit as the client computes it, with an error in the last digit; some count a GPU as all of them.
            times = (line.index + 1) if line.how == "multiplied" else 1
            cpu_ec = a[2] * line.flops // 432_000_000_000 + line.index
            gpu_ec = a[3] * 2_000 * line.flops // 2_160_000_000_000 * times + line.index
            now = tuple(x + y for x, y in zip(last, (cpu_ec, gpu_ec, *a[2:]), strict=True))
        elif line.how == "any":
            now = tuple(x + y for x, y in zip(last, a, strict=True))
        elif line.how == "restart":
            now = a
        elif line.how == "earlier":
            now = past[-min(line.index + 1, len(past))]
        elif line.how == "handed":
            row = rows.get(line.project)
            now = tuple(x + y for x, y in zip((row and row.handed) or last, a, strict=True))
        else:
            now = last
        past.append(Totals(*now))
        return past[-1], None


class Comparison:
    """One host in both ledgers."""

    def __init__(self) -> None:
        self.client = Client()
        self.now_us = START_US
        self.host = HostState()
        self.rows: dict[int, ProjectState] = {}
        self.hardware: Hardware | None = None
        self.reference = ReferenceHost()
        # Credit is rounded once for each stretch of time with the same hardware.
        self.stretches = 0

    def do(self, step: Step) -> None:
        self.now_us += step.gap_us
        client_now = None
        if step.client_step is not None:
            client_now = self.client.clock = self.client.clock + step.client_step
            if not math.isfinite(self.client.clock):
                self.client.clock = 1e9
        reports = [self.report(line) for line in step.lines]
        got = self.settle(reports, step, client_now)
        expected = self.reference.rpc(
            [
                (each.project_id, as_dict(each.totals), each.fault, {u.kind: u.is_lasting for u in each.unreadable})
                for each in reports
            ],
            now=self.now_us,
            client_now=client_now if client_now is not None and math.isfinite(client_now) else None,
            old=self.hardware,
            new=step.hardware,
            same=step.is_same,
            own_last_at=None if step.silent_us is None else self.now_us - step.silent_us,
            honours=step.honours,
            usual=step.usual,
        )
        self.compare(got, expected)
        if not got.stale:
            self.check_changed(got)
            self.host = got.host
            self.rows |= {row.project_id: row for row in got.changed}
            self.check_promises()
            self.check_replay(reports, step, client_now)
            self.hardware = step.hardware or self.hardware
            self.stretches += 1
        for project in step.offers:
            if project not in {report.project_id for report in reports}:
                self.rows[project] = offer(self.rows.get(project), project)
                self.reference.offer(project)

    def report(self, line: Line) -> Report:
        totals, fault = self.client.tell(line, self.rows)
        if totals is None:
            return Report(line.project, totals, fault)
        kinds = dict(line.unreadable)
        totals = totals._replace(**dict.fromkeys(kinds, 0))
        return Report(line.project, totals, None, tuple(Unreadable(kind, kind, kinds[kind]) for kind in kinds))

    def settle(self, reports: list[Report], step: Step, client_now: float | None) -> LedgerChanges:
        arguments = (self.host, self.rows, reports)
        before = copy.deepcopy(arguments)
        settlement = settle(
            *arguments,
            now_us=self.now_us,
            client_now=client_now,
            old=machine_of(self.hardware),
            new=machine_of(step.hardware),
            is_same_client=step.is_same,
            own_last_at_us=None if step.silent_us is None else self.now_us - step.silent_us,
            honours_handed=step.honours,
            ceilings=Ceilings(),
            usual=Usual({(Processor(kind), f"a {kind}"): flops for kind, flops in step.usual.items()}),
        )
        assert arguments == before, "settle changed its arguments"
        return settlement

    def compare(self, got: LedgerChanges, expected: dict[int, dict[str, int]] | None) -> None:
        assert got.stale == (expected is None)
        assert {i: as_dict(credit) for i, credit in got.credits.items()} == (expected or {})
        told = [(note.kind.value, note.project_id, note.amount_kind, note.amount) for note in got.notes]
        assert sorted(told, key=repr) == sorted(self.reference.notes, key=repr)
        marks = {i: {str(flag.name).lower() for flag in DayFlag if flag & bits} for i, bits in got.flags.items()}
        assert marks == ({} if got.stale else self.reference.marks)
        assert dict(zip(Allowance._fields, got.host.level, strict=True)) == self.reference.level
        assert got.host.last_at_us == self.reference.last_at
        assert got.host.client_now == self.reference.client_now
        after = self.rows | {row.project_id: row for row in got.changed}
        assert {i: plain(row) for i, row in after.items()} == self.reference.rows

    def check_changed(self, got: LedgerChanges) -> None:
        """Rows that stay as they are need not be written."""
        assert all(row != self.rows.get(row.project_id) for row in got.changed)
        assert len({row.project_id for row in got.changed}) == len(got.changed)

    def check_promises(self) -> None:
        assert min(self.host.level) >= 0
        sums = dict.fromkeys(KINDS, 0)
        credited = dict.fromkeys(KINDS, 0)
        for row in self.rows.values():
            assert min(row.credited + row.pending + row.dropped) >= 0
            assert row.pending[4:] == (0, 0)
            for kind, c, q, d in zip(KINDS, row.credited, row.pending, row.dropped, strict=True):
                sums[kind] += c + q + d
                credited[kind] += c
        assert sums == self.reference.work
        possible = self.reference.possible
        for kind in ("cpu_time", "gpu_time"):
            assert credited[kind] <= possible[kind]
        for kind in ("cpu_ec", "gpu_ec"):
            assert credited[kind] < possible[kind] + self.stretches + 1
        assert (credited["njobs_success"] + credited["njobs_error"]) * MICRO <= possible["jobs"]

    def check_replay(self, reports: list[Report], step: Step, client_now: float | None) -> None:
        """The same request again moves no total; it may pay a last micro-unit of what waits."""
        again = self.settle(reports, step, client_now)
        if again.stale:
            return
        for row in again.changed:
            before = self.rows[row.project_id]
            # What a sum was that begins again with its next number says nothing any more.
            reported = row.reported and before.reported and begun_again(row.reported, row.broken, before.reported)
            kept = (reported, row.earlier, row.restart, row.handed, row.listed, row.dropped, row.broken)
            marks = (before.earlier, before.restart, before.handed)
            assert kept == (before.reported, *marks, before.listed, before.dropped, before.broken)
            for c, q, c0, q0 in zip(row.credited, row.pending, before.credited, before.pending, strict=True):
                assert c + q == c0 + q0
                assert q <= q0


def begun_again(totals: Totals, broken: frozenset[str], others: Totals) -> Totals:
    return Totals(*(other if kind in broken else own for kind, own, other in zip(KINDS, totals, others, strict=True)))


@settings(max_examples=60, deadline=None)
@given(st.lists(steps, min_size=1, max_size=14))
def test_any_sequence_of_requests_agrees_with_the_reference(sequence: list[Step]) -> None:
    comparison = Comparison()
    for step in sequence:
        comparison.do(step)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.tuples(gaps.filter(lambda us: us >= 0), st.lists(st.integers(0, 100), min_size=3, max_size=3))),
    st.sampled_from([1_000_000_000, 3_333_333_333, 4_000_000_000]),
)
def test_an_honest_host_is_credited_all_it_did_however_often_it_reports(
    requests: list[tuple[int, list[int]]], flops: int
) -> None:
    machine = Machine(4, flops)
    host = HostState(START_US, None)
    rows = {i: offer(None, i) for i in (1, 2, 3)}
    run_us = [0, 0, 0]
    now_us = START_US
    for gap_us, parts in requests:
        now_us += gap_us
        if gap_us > 30 * DAY * MICRO:
            continue  # longer than unused allowance is kept
        run_us = [us + 4 * gap_us * part // max(1, sum(parts)) for us, part in zip(run_us, parts, strict=True)]
        settlement = settle(
            host,
            rows,
            [
                Report(i, Totals(us * flops // 432_000_000_000, 0, us, 0, 0, 0))
                for i, us in zip(rows, run_us, strict=True)
            ],
            now_us=now_us,
            client_now=None,
            old=machine,
            new=machine,
            is_same_client=True,
            honours_handed=False,
            ceilings=Ceilings(),
        )
        host = settlement.host
        rows |= {row.project_id: row for row in settlement.changed}
        assert settlement.notes == []
    assert [row.credited[2] for row in rows.values()] == run_us
    # At most the last digit of the sum may wait.
    assert sum(row.pending[0] for row in rows.values()) <= 3
