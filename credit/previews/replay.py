"""Replays logged passes of the validator and runs of the feeder under current and proposed settings at once.

Pure. Both runs begin with the statistics of the time, and then continue independently: averages, factors and the app's
lowest average move as the validator and the feeder move them. Changes by others between two passes (reported failures,
time-outs, merged records) show in the logged statistics, and are applied to both runs.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, Final

from credit.engine.averages import Average, AverageWithVariance
from credit.engine.facts import HostVersionFacts, WorkunitFacts
from credit.previews.run import ReplayedDecision, ReplayedPass, Run, Settings, VersionState
from credit.statistics.pass_arrays import PassFacts

_OVERLAPPING: Final = 16
"""Earlier states of a version that are remembered: another pass may have read it before the last ones changed it."""


@dataclass(slots=True)
class ReplayedResult:
    """A valid result. ``type``: the number of its processor type, from 1; ``at``: when it was granted."""

    result: int
    workunit: int
    host: int
    version: int
    type: int
    at: float
    is_late: bool
    workunit_facts: WorkunitFacts
    partial_credit: float
    elapsed_secs: float
    granted: float
    before: ReplayedDecision
    after: ReplayedDecision


@dataclass(slots=True)
class Guesses:
    """What the logged statistics do not tell for certain.

    ``records``: failures between passes that were counted by other rules than those replayed. ``versions``: statistics
    that somebody changed in between.
    """

    records: int = 0
    versions: int = 0


@dataclass
class Replay:
    """Both runs, pass by pass. ``averages``: those of all (host, version) records at the beginning, for medians."""

    before: Settings
    after: Settings
    averages: Sequence[tuple[int, int, Average]] = ()
    guesses: Guesses = field(default_factory=Guesses)

    def __post_init__(self) -> None:
        self.runs = Run(self.before, self.averages), Run(self.after, self.averages)
        self._pairs: dict[int, deque[tuple[VersionState, VersionState]]] = {}
        self._least: deque[tuple[float | None, float | None]] = deque(maxlen=_OVERLAPPING)

    def step(self, logged: PassFacts) -> list[ReplayedResult]:
        """Replay a pass; return its valid results (none for a run of the feeder)."""
        read = {state[0]: self._meet_version(state, logged.at) for state in logged.versions.tolist()}
        least = self._meet_least(logged.min_avg_pfc)
        if logged.is_feeder:
            for run in self.runs:
                run.feed()
            self._remember()
            return []
        batch = ReplayedPass(logged)
        rows = logged.records.tolist()
        for row in rows:
            self._meet_record(row, logged.at)
        decided = []
        for place, run in enumerate(self.runs):
            records = [run.records[row[0]] for row in rows]
            versions = {id_: run.facts_of(id_, pair[place]) for id_, pair in read.items()}
            decided.append(run.decide(batch, records, versions, least[place]))
            _store(run, rows)
        self._remember()
        return list(_outcomes(batch, rows, *decided))

    def _meet_version(self, row: Sequence[Any], at: float) -> tuple[VersionState, VersionState]:
        """Return a version as the two runs would have read it where the logged pass read ``row``."""
        id_, n, avg, scale, is_counted, is_received = row
        state = VersionState(n, _or_none(avg), _or_none(scale), bool(is_counted), bool(is_received))
        one, other = self.runs
        if id_ not in one.versions:
            for run in self.runs:
                run.start_version(id_, state, at)
            self._pairs[id_] = deque(maxlen=_OVERLAPPING)
        elif one.versions[id_] != state:
            for pair in reversed(self._pairs[id_]):
                if pair[0] == state:
                    return pair
            if one.versions[id_].n != state.n and self.after.restored_at(id_, at) is not None:
                one.versions[id_] = state
            elif one.versions[id_].n != state.n:
                if other.versions[id_] != one.versions[id_]:
                    self.guesses.versions += 1
                one.versions[id_] = other.versions[id_] = state
        return one.versions[id_], other.versions[id_]

    def _meet_least(self, least: float | None) -> tuple[float | None, float | None]:
        one, other = self.runs
        if not self._least:
            one.least = other.least = least
            self._least.append((least, least))
        if one.least != least:
            for pair in reversed(self._least):
                if pair[0] == least:
                    return pair
        return one.least, other.least

    def _remember(self) -> None:
        one, other = self.runs
        for id_, pairs in self._pairs.items():
            pair = one.versions[id_], other.versions[id_]
            if not pairs or pairs[-1] != pair:
                pairs.append(pair)
        if self._least[-1] != (one.least, other.least):
            self._least.append((one.least, other.least))

    def _meet_record(self, row: Sequence[Any], at: float) -> None:
        """Apply to both runs' record what others did to it since the last pass."""
        logged = _record(row)
        one, other = self.runs
        earlier = one.records.get(row[0])
        if earlier is None:
            one.start_record(row[0], row[2], logged, at)
            other.start_record(row[0], row[2], _copy(logged), at)
            return
        if _counts(earlier) == _counts(logged):
            return
        own = other.records[row[0]]
        if self.before.app.rules != self.after.app.rules and _counts(own) != _counts(earlier):
            self.guesses.records += 1
        _follow(own, earlier, logged, keeps_samples=self.after.restored_at(row[2], at) is not None)
        one.records[row[0]] = logged


def _store(run: Run, rows: Sequence[Sequence[Any]]) -> None:
    """Round times as the database does, and update medians after a pass."""
    for row in rows:
        record = run.records[row[0]]
        if record.host_scale_time is not None:
            record.host_scale_time = round(record.host_scale_time * 1e6) / 1e6
        if record.samples_since is not None:
            record.samples_since = round(record.samples_since * 1e6) / 1e6
        if run.medians is not None and row[2]:
            run.medians.put(row[0], row[2], record.pfc)


def _outcomes(
    batch: ReplayedPass,
    rows: Sequence[Sequence[Any]],
    before: Sequence[ReplayedDecision],
    after: Sequence[ReplayedDecision],
) -> Iterable[ReplayedResult]:
    facts = [WorkunitFacts(*row[1:6]) for row in batch.workunits]
    for place, result in enumerate(batch.results):
        if not batch.is_valid[place]:
            continue
        row = rows[result[2]] if result[2] >= 0 else None
        workunit = batch.workunits[result[1]]
        yield ReplayedResult(
            result[0],
            workunit[0],
            0 if row is None else row[1],
            result[3],
            1 if row is None else row[3],
            batch.at,
            bool(workunit[6]),
            facts[result[1]],
            result[16],
            result[7],
            max(result[17], result[16]),
            before[place],
            after[place],
        )


def _record(row: Sequence[Any]) -> HostVersionFacts:
    (pfc_n, pfc_avg, clean_n, clean_avg, recent_n, recent_avg, waiting_n, waiting_avg) = row[4:12]
    samples_at, probation, scale_at, valid, failing, peak_flops, lead_jobs, et_n, et_avg = row[12:]
    return HostVersionFacts(
        Average(int(pfc_n), _or_none(pfc_avg)),
        scale_probation=bool(probation),
        host_scale_time=_or_none(scale_at),
        consecutive_valid=int(valid),
        clean_pfc=Average(int(clean_n), _or_none(clean_avg)),
        recent_pfc=Average(int(recent_n), _or_none(recent_avg)),
        waiting_pfc=Average(int(waiting_n), _or_none(waiting_avg)),
        samples_since=_or_none(samples_at),
        failing_share=failing,
        peak_flops=_or_none(peak_flops),
        lead_jobs=lead_jobs,
        # Its variance decides nothing.
        et=AverageWithVariance(int(et_n), _or_none(et_avg)),
    )


def _or_none(number: float) -> float | None:
    return None if number != number else number


def _copy(record: HostVersionFacts) -> HostVersionFacts:
    return replace(
        record,
        pfc=copy(record.pfc),
        et=copy(record.et),
        turnaround=copy(record.turnaround),
        clean_pfc=copy(record.clean_pfc),
        recent_pfc=copy(record.recent_pfc),
        waiting_pfc=copy(record.waiting_pfc),
    )


def _samples(record: HostVersionFacts) -> tuple[Any, ...]:
    return (
        record.pfc.n,
        record.clean_pfc.n,
        record.recent_pfc.n,
        record.waiting_pfc.n,
        record.samples_since,
        record.et.n,
    )


def _counts(record: HostVersionFacts) -> tuple[Any, ...]:
    """Return the numbers that show whether somebody else changed the record.

    Averages do not: other settings move them too.
    """
    return (
        *_samples(record),
        record.failing_share,
        record.scale_probation,
        record.host_scale_time,
        record.consecutive_valid,
    )


def _follow(own: HostVersionFacts, earlier: HostVersionFacts, logged: HostVersionFacts, *, keeps_samples: bool) -> None:
    """Apply to ``own`` the change from ``earlier`` to ``logged``.

    ``keeps_samples``: except for samples, which are restored.
    """
    if own.failing_share == earlier.failing_share:
        own.failing_share = logged.failing_share
    else:
        # Each failure takes the same part of what is left to 1.
        left = (1 - logged.failing_share) / max(1e-12, 1 - earlier.failing_share)
        own.failing_share = min(1.0, max(0.0, 1 - (1 - own.failing_share) * left))
    spell = logged.scale_probation, logged.host_scale_time
    if spell != (earlier.scale_probation, earlier.host_scale_time):
        own.scale_probation, own.host_scale_time = spell
    if own.consecutive_valid == earlier.consecutive_valid:
        own.consecutive_valid = logged.consecutive_valid
    elif logged.failing_share > earlier.failing_share:
        own.consecutive_valid = min(own.consecutive_valid, logged.consecutive_valid)
    if _samples(earlier) != _samples(logged) and not keeps_samples:
        fresh = _copy(logged)
        own.pfc, own.clean_pfc = fresh.pfc, fresh.clean_pfc
        own.recent_pfc, own.waiting_pfc, own.samples_since = fresh.recent_pfc, fresh.waiting_pfc, fresh.samples_since
        own.peak_flops, own.lead_jobs, own.et = fresh.peak_flops, fresh.lead_jobs, fresh.et
