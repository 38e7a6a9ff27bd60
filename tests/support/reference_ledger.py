"""The accounting rules a second time, written to be plain, for the ledger to be compared with.

Amounts are dicts by kind, rates are fractions per second, and a host is one object that changes in place:
nothing is shared with the ledger but the rules (docs/explanation/accounting.md). Slow, and meant to be.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import floor

Amounts = dict[str, int]
Gpus = Sequence[tuple[int, int]]
Hardware = tuple[int, int, Gpus]  # CPU instances, FLOPS of one, (count, peak FLOPS) of each kind of GPU
Line = tuple[int, Amounts | None, str | None, dict[str, bool]]  # project, totals, fault; unreadable: for good?

KINDS = ["cpu_ec", "gpu_ec", "cpu_time", "gpu_time", "njobs_success", "njobs_error"]
MICRO = 10**6
CREDITS_PER_FLOP = Fraction(200, 86_400 * 10**9)
GPU_EFFICIENCY = Fraction(20, 100)
MINUTE = 60
DAY = 24 * 60 * MINUTE

MAX_CPUS, MAX_CPU_FLOPS, MAX_GPUS, MAX_GPU_FLOPS = 1024, 200 * 10**9, 64, 500 * 10**12


# How the notes of a project mark its day
MARKS = {
    "baseline": "baseline",
    "reset": "reset",
    "returned": "returned",
    "sum_broken": "sum_broken",
    "sum_restarted": "sum_broken",
    "several_gpus": "several_gpus",
    "ec_above_time": "capped",
}


def counts_in_balance(days: Iterable[set[str]]) -> bool:
    """Whether a computer with these marks on its days of the last week counts in the balance of shares."""
    return not any("capped" in marks for marks in days)


def nothing() -> Amounts:
    return dict.fromkeys(KINDS, 0)


@dataclass
class Row:
    """A host at a project, in the letters of the rules: R, each W, B, C, Q, and what was dropped."""

    R: Amounts | None = None
    W: list[Amounts] = field(default_factory=list)
    B: Amounts | None = None
    C: Amounts = field(default_factory=nothing)
    Q: Amounts = field(default_factory=nothing)
    dropped: Amounts = field(default_factory=nothing)
    handed: Amounts | None = None
    listed: bool = False
    # Kinds whose sum is no number, and counts from the first number that it is again
    lost: set[str] = field(default_factory=set)


@dataclass
class Speeds:
    """What a machine does per second, and its fastest processors."""

    per_second: dict[str, Fraction]
    cpu_flops: int
    gpu_flops: int


def speeds_of(hardware: Hardware | None) -> Speeds:
    """Units per second of each allowance (seconds, credits, jobs: no micro-units here)."""
    ncpus, flops, gpus = hardware or (0, 0, ())
    ncpus = max(0, min(ncpus, MAX_CPUS))
    flops = max(0, min(flops, MAX_CPU_FLOPS))
    devices: list[int] = []
    for count, peak in gpus:
        devices += [max(0, min(peak, MAX_GPU_FLOPS))] * max(0, min(count, MAX_GPUS))
    devices = devices[:MAX_GPUS]
    instances = ncpus + (1 if devices else 0)
    return Speeds(
        {
            "cpu_time": Fraction(instances),
            "gpu_time": Fraction(len(devices)),
            "cpu_ec": instances * flops * CREDITS_PER_FLOP,
            "gpu_ec": sum(devices) * GPU_EFFICIENCY * CREDITS_PER_FLOP,
            "jobs": Fraction(ncpus + len(devices)),
        },
        flops,
        max(devices, default=0),
    )


def believed(hardware: Hardware | None, usual: dict[str, int]) -> tuple[Hardware | None, set[tuple[str, int, int]]]:
    """The hardware with the speeds that count, and those that do not: device, reported, assumed."""
    if hardware is None:
        return None, set()
    wrong = set()

    def speed(device: str, flops: int, otherwise: int) -> int:
        normal = usual.get(device)
        if device == "cpu" and flops == 10**9 and normal:
            # What a client says before its first benchmark
            flops = 0
        is_far = normal is not None and not (normal / 4 <= flops <= normal * 4)
        better = (normal or otherwise) if flops <= 0 or is_far else flops
        if better != flops and better:
            wrong.add((device, max(0, flops), better))
        return better

    ncpus, flops, gpus = hardware
    return (ncpus, speed("cpu", flops, 10**9), [(count, speed("gpu", peak, 0)) for count, peak in gpus]), wrong


def at_least(totals: Amounts, others: Amounts) -> bool:
    return all(totals[kind] >= others[kind] for kind in KINDS)


class ReferenceHost:
    """One host: its clock, its allowances and its rows; ``rpc`` takes a request, ``offer`` a reply."""

    def __init__(self) -> None:
        self.last_at: int | None = None
        self.client_now: float | None = None
        self.level = {"cpu_time": 0, "gpu_time": 0, "cpu_ec": 0, "gpu_ec": 0, "jobs": 0}
        self.rows: dict[int, Row] = {}
        # For the tests' invariants, not for the rules:
        self.possible = dict.fromkeys(self.level, Fraction(0))
        self.work = nothing()
        self.notes: list[tuple[str, int | None, str | None, int]] = []
        # What the day of each project is marked with
        self.marks: dict[int, set[str]] = {}

    def rpc(
        self,
        lines: Sequence[Line],
        *,
        now: int,
        client_now: float | None = None,
        old: Hardware | None,
        new: Hardware | None,
        same: bool = True,
        own_last_at: int | None = None,
        honours: bool = False,
        usual: dict[str, int] | None = None,
    ) -> dict[int, Amounts] | None:
        """The credit of each project that got some; None if the message was stale. ``now`` in micro-seconds."""
        self.notes, self.marks = [], {}
        if client_now is not None and self.client_now is not None and self.last_at is not None:
            near = -3600 * MICRO < now - self.last_at < 3600 * MICRO
            if client_now < self.client_now and near:
                return None
        old, wrong = believed(old, usual or {})
        if new is not None:
            new, wrong = believed(new, usual or {})
        speeds = self._faster(speeds_of(old), speeds_of(new))
        seconds = self._fill(speeds, now)
        if own_last_at is not None:
            # Another client has reported since this one did.
            seconds = max(seconds, Fraction(now - own_last_at, MICRO))
        if client_now is not None:
            self.client_now = client_now
        first_of_each: dict[int, Line] = {}
        for line in lines:
            first_of_each.setdefault(line[0], line)
        deltas = {}
        for project, totals, fault, unreadable in first_of_each.values():
            row = self.rows.setdefault(project, Row())
            if totals is None:
                if fault is not None:
                    self.notes.append(("invalid", project, None, 0))
                if not same:
                    row.R, row.W, row.B, row.lost = None, [], None, set()
            else:
                totals, delta = self._readable_delta(project, row, totals, unreadable, speeds, seconds, honours, same)
                for kind in KINDS:
                    self.work[kind] += delta[kind]
                deltas[project] = self._worth(project, row, delta, speeds)
                row.R = dict(totals)
                row.handed = None
        for project, row in self.rows.items():
            if project not in first_of_each:
                row.listed = False
                if not same:
                    row.R, row.W, row.B, row.lost = None, [], None, set()
            elif first_of_each[project][2] is None or not same:
                # Else the totals were no numbers, and the project is listed if it was before.
                row.listed = True
        is_gpu_wrong = any(device == "gpu" for device, _, _ in wrong)
        for kind, of, amount_kind, _ in self.notes:
            if kind in MARKS and of is not None:
                # More than a peak of nonsense is worth is the driver's fault, not the computer's.
                is_excused = kind == "ec_above_time" and amount_kind == "gpu_ec" and is_gpu_wrong
                self._mark(of, "speed_replaced" if is_excused else MARKS[kind])
        credit = self._credit(deltas, speeds)
        if credit:
            self.notes += [("speed_replaced", None, None, 0) for _ in wrong]
        hardware = new if new is not None else old
        for project in credit:
            if wrong:
                self._mark(project, "speed_replaced")
            if hardware is not None and hardware[1] == 10**9:
                self._mark(project, "speed_unknown")
        return credit

    def _mark(self, project: int, mark: str) -> None:
        self.marks.setdefault(project, set()).add(mark)

    def offer(self, project: int) -> None:
        """Our reply offers a project that the request did not list."""
        row = self.rows.setdefault(project, Row())
        if row.handed is None:
            row.handed = dict(row.C)

    @staticmethod
    def _faster(a: Speeds, b: Speeds) -> Speeds:
        return Speeds(
            {kind: max(a.per_second[kind], b.per_second[kind]) for kind in a.per_second},
            max(a.cpu_flops, b.cpu_flops),
            max(a.gpu_flops, b.gpu_flops),
        )

    def _fill(self, speeds: Speeds, now: int) -> Fraction:
        """Rule 2: more allowance; returns the seconds since the last report."""
        since = now if self.last_at is None else min(now, self.last_at)
        is_first = self.last_at is None
        self.last_at = now
        for kind, rate in speeds.per_second.items():
            if is_first:
                self.level[kind] = 0
            else:
                # rate per second in units is rate per micro-second in micro-units
                self.possible[kind] += rate * (now - since)
                filled = self.level[kind] + floor(rate * now) - floor(rate * since)
                self.level[kind] = min(filled, floor(30 * DAY * MICRO * rate))
        return Fraction(now - since, MICRO)

    def _readable_delta(
        self,
        project: int,
        row: Row,
        totals: Amounts,
        unreadable: dict[str, bool],
        speeds: Speeds,
        seconds: Fraction,
        honours: bool,
        same: bool,
    ) -> tuple[Amounts, Amounts]:
        """Rules 3 and 4 for the totals that are numbers; the others stand still."""
        for_good = {kind for kind in unreadable if unreadable[kind]}
        # No credit without its time, and no time before the credit that may still be read
        still = set(unreadable)
        for one in ("cpu", "gpu"):
            if f"{one}_time" in unreadable:
                still.add(f"{one}_ec")
                if unreadable[f"{one}_time"]:
                    for_good.add(f"{one}_ec")
            if f"{one}_ec" in still - for_good:
                still.add(f"{one}_time")
        lost = still & (for_good | row.lost)
        goes_on = row.R is not None and row.listed and same
        if goes_on and row.R is not None:
            for kind in row.lost - still:
                # As if it had always been this number
                for marks in (row.R, *row.W, *([row.B] if row.B else [])):
                    marks[kind] = totals[kind]
                self.notes.append(("sum_restarted", project, None, 0))
        self.notes += [("sum_broken" if kind in lost else "invalid", project, None, 0) for kind in unreadable]
        assumed = row.R if goes_on else row.handed if honours else None
        filled = {kind: (assumed[kind] if assumed else 0) if kind in still else totals[kind] for kind in KINDS}
        is_base_unknown = not goes_on and (not same or row.handed is None or (row.listed and row.R is None))
        noted = len(self.notes)
        delta = self._delta(project, row, filled, speeds, seconds, honours, same)
        jumped = any(note[0] in ("reset", "returned") for note in self.notes[noted:])
        row.lost = still if jumped or is_base_unknown else lost
        reached = {kind: filled[kind] - (delta[kind] if kind in still else 0) for kind in KINDS}
        return reached, {kind: 0 if kind in still else delta[kind] for kind in KINDS}

    def _delta(
        self,
        project: int,
        row: Row,
        totals: Amounts,
        speeds: Speeds,
        seconds: Fraction,
        honours: bool,
        same: bool,
    ) -> Amounts:
        """Rules 3 and 4: what was done since the base, or since the last totals."""
        before = row.R
        if before is None or not same:
            base = self._base(project, row, totals, honours, same)
            row.W, row.B = [], None
            return {kind: totals[kind] - base[kind] for kind in KINDS}
        not_used = nothing()
        if not row.listed:
            base = self._base(project, row, totals, honours, same)
            if base != before:
                self._keep(row, before)
            if honours and row.handed is not None and not at_least(base, row.handed):
                not_used = row.handed
            row.B = before = dict(base)
        if not at_least(totals, before):
            self.notes.append(("reset", project, None, 0))
            self._keep(row, before)
            row.B = dict(totals)
            return nothing()
        delta = {kind: totals[kind] - before[kind] for kind in KINDS}
        rate, time = speeds.per_second, seconds + 2 * MINUTE
        is_too_much = (
            delta["cpu_time"] > rate["cpu_time"] * time * MICRO
            or delta["gpu_time"] > rate["gpu_time"] * time * MICRO
            or delta["njobs_success"] + delta["njobs_error"] > rate["jobs"] * time
        )
        is_back = False
        for mark in row.W:
            if row.B is None or at_least(before, mark):
                continue
            if is_too_much or self._is_leap(row.B, before, totals, mark):
                is_back = True
                # Of what is new, only the part above the mark
                delta = {kind: min(delta[kind], max(0, totals[kind] - mark[kind])) for kind in KINDS}
        if is_back:
            self.notes.append(("returned", project, None, 0))
            self._keep(row, before)
            row.B = dict(totals)
        self._keep(row, not_used)
        if all(at_least(totals, mark) for mark in row.W):
            row.B = None
        return delta

    @staticmethod
    def _keep(row: Row, totals: Amounts) -> None:
        """One more W. Of more than sixteen one is forgotten: one in a crowd, from the lowest up, or the lowest."""

        def length(mark: Amounts) -> tuple[int, int]:
            return mark["cpu_time"] + mark["gpu_time"], mark["njobs_success"] + mark["njobs_error"]

        if any(totals.values()) and totals not in row.W:
            row.W.append(dict(totals))
            row.W.sort(key=length)
        if len(row.W) == 17:
            forgotten = row.W[0]
            for lower, mark, higher in reversed(list(zip(row.W, row.W[1:], row.W[2:], strict=False))):
                if length(higher)[0] <= 2 * length(lower)[0]:
                    forgotten = mark
            row.W.remove(forgotten)

    def _base(self, project: int, row: Row, totals: Amounts, honours: bool, same: bool) -> Amounts:
        """Rule 3: the totals from which a new attachment counts."""
        listed_before_without_totals = row.listed and row.R is None
        if not same or listed_before_without_totals or row.handed is None:
            if any(totals.values()):
                self.notes.append(("baseline", project, None, totals["cpu_ec"] + totals["gpu_ec"]))
            return dict(totals)
        if honours and all(totals[kind] >= row.handed[kind] for kind in KINDS):
            return row.handed
        return nothing()

    @staticmethod
    def _is_leap(start: Amounts, before: Amounts, now: Amounts, end: Amounts) -> bool:
        """Rule 4: is this step longer than all since the start, while the end was farther than that, and longer than
        half of what was left? Lengths are run times, but numbers of jobs where there never was run time to go.
        """
        for a, b in (("cpu_time", "gpu_time"), ("njobs_success", "njobs_error")):
            left = max(0, end[a] - before[a]) + max(0, end[b] - before[b])
            if left:
                walked = before[a] + before[b] - start[a] - start[b]
                step = now[a] + now[b] - before[a] - before[b]
                return walked < left < 2 * step and walked < step
            if end[a] > start[a] or end[b] > start[b]:
                return False
        return False

    def _worth(self, project: int, row: Row, delta: Amounts, speeds: Speeds) -> Amounts:
        """Rule 5: credit up to time times speed, and for rounding a micro-second, a FLOPS, two micro-credits."""
        worth = dict(delta)
        for credit, time, flops, part in (
            ("cpu_ec", "cpu_time", speeds.cpu_flops, Fraction(1)),
            ("gpu_ec", "gpu_time", speeds.gpu_flops, GPU_EFFICIENCY),
        ):
            most = floor((delta[time] + 1) * (flops + 1) * part * CREDITS_PER_FLOP) + 2 if flops else 0
            worth[credit] = min(delta[credit], most)
            excess = delta[credit] - worth[credit]
            row.dropped[credit] += excess
            if excess:
                # As often as there are GPUs: a known error of clients
                is_known = credit == "gpu_ec" and delta[credit] <= most * speeds.per_second["gpu_time"]
                self.notes.append(("several_gpus" if is_known else "ec_above_time", project, credit, excess))
        return worth

    def _credit(self, deltas: dict[int, Amounts], speeds: Speeds) -> dict[int, Amounts]:
        """Rules 6 to 8: what the allowance covers, what waits, what is dropped."""
        credit = {project: nothing() for project in self.rows}
        waited = {project: dict(row.Q) for project, row in self.rows.items()}
        dropped = {project: dict(row.dropped) for project, row in self.rows.items()}
        for kind in KINDS[:4]:
            wanted = {project: delta[kind] for project, delta in deltas.items()}
            for project, share in self._shares(wanted, self.level[kind]).items():
                credit[project][kind] = share
                self.level[kind] -= share
                self.rows[project].Q[kind] += wanted[project] - share
            waiting = {project: row.Q[kind] for project, row in self.rows.items()}
            whole = sum(waiting.values())
            part = min(Fraction(1), Fraction(self.level[kind], whole)) if whole else Fraction(0)
            for project, amount in waiting.items():
                paid = floor(amount * part)
                credit[project][kind] += paid
                self.level[kind] -= paid
                self.rows[project].Q[kind] -= paid
                if min(paid, waited[project][kind]):
                    self._mark(project, "pending_paid")
            one_day = floor(speeds.per_second[kind] * DAY * MICRO)
            waiting = {project: row.Q[kind] for project, row in self.rows.items()}
            kept = self._shares(waiting, one_day)
            for project, row in self.rows.items():
                row.dropped[kind] += row.Q[kind] - kept[project]
                row.Q[kind] = kept[project]
            self._tell_dropped(kind, sum(waiting.values()) - sum(kept.values()))
        self._credit_jobs(deltas, credit)
        for project, row in self.rows.items():
            if row.dropped != dropped[project] or any(row.Q[kind] > waited[project][kind] for kind in KINDS):
                self._mark(project, "capped")
        for project, amounts in credit.items():
            for kind in KINDS:
                self.rows[project].C[kind] += amounts[kind]
        return {project: amounts for project, amounts in credit.items() if any(amounts.values())}

    def _credit_jobs(self, deltas: dict[int, Amounts], credit: dict[int, Amounts]) -> None:
        """Successes and errors have one allowance; what it does not cover is dropped."""
        wanted = {project: d["njobs_success"] + d["njobs_error"] for project, d in deltas.items()}
        lost = {"njobs_success": 0, "njobs_error": 0}
        shares = self._shares(wanted, self.level["jobs"] // MICRO)
        for project, share in shares.items():
            delta = deltas[project]
            successes = floor(Fraction(share * delta["njobs_success"], wanted[project] or 1))
            for kind, got in (("njobs_success", successes), ("njobs_error", share - successes)):
                credit[project][kind] = got
                self.rows[project].dropped[kind] += delta[kind] - got
                lost[kind] += delta[kind] - got
            self.level["jobs"] -= share * MICRO
        for kind, amount in lost.items():
            self._tell_dropped(kind, amount)

    @staticmethod
    def _shares(wanted: dict[int, int], limit: int) -> dict[int, int]:
        """Each at most the limit, and all the same fraction of that, so that they fit into it together."""
        clipped = {project: min(amount, limit) for project, amount in wanted.items()}
        total = sum(clipped.values())
        fraction = min(Fraction(1), Fraction(limit, total)) if total else Fraction(1)
        return {project: floor(amount * fraction) for project, amount in clipped.items()}

    def _tell_dropped(self, kind: str, amount: int) -> None:
        if amount:
            self.notes.append(("dropped", None, kind, amount))
