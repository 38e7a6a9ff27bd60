"""One run of a replay: settings, and the statistics that move with each pass of the validator and run of the feeder.

Pure.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import numpy as np

from credit.engine.averages import Average
from credit.engine.decisions import Decision, count_only_invalid, decide_late, decide_set
from credit.engine.explanation import Explanation, Grant
from credit.engine.facts import AppFacts, HostVersionFacts, ResultFacts, VersionFacts, WorkunitFacts
from credit.engine.normalisation import normalise
from credit.engine.probation import needs_confirmation
from credit.statistics.pass_arrays import PassFacts

MAX_SCALE: Final = 1e30


class VersionState(NamedTuple):
    """What moves of a version."""

    n: int
    avg: float | None
    scale: float | None
    is_counted: bool


class Kept(NamedTuple):
    """A version's statistics as they were at a time (Unix time) when they were replaced, and its records' by number."""

    at: float
    version: VersionState
    records: Mapping[int, HostVersionFacts]


@dataclass(frozen=True, slots=True)
class Settings:
    """An app's settings; of ``versions`` what does not move (kind, number, whether withdrawn, factor from outside).

    ``reset``: versions whose statistics, and their hosts', begin anew. ``restored``: versions whose statistics are put
    back, as if they had never been replaced. ``uses_medians``: a version's average is the median of its hosts'.
    """

    app: AppFacts
    versions: Mapping[int, VersionFacts]
    uses_medians: bool = False
    reset: frozenset[int] = frozenset()
    restored: Mapping[int, Kept] = field(default_factory=dict)

    def kept(self, version: int, at: float) -> Kept | None:
        """What is put back of this version, if it was replaced before then."""
        found = self.restored.get(version)
        return found if found is not None and at >= found.at else None


NO_STATISTICS: Final = VersionState(0, None, None, False)
"""A version whose statistics were reset."""


@dataclass(slots=True)
class Decided:
    """A valid result in one run; no grant: it would wait for another result to confirm it."""

    credit: float | None = None
    grant: Grant | None = None
    claim: Explanation | None = None


class Medians:
    """The median, for each version, of its hosts' averages, as ``credit.statistics.sql.HOST_MEDIANS`` has it."""

    def __init__(self, min_host_samples: int, known: Iterable[tuple[int, int, Average]]) -> None:
        self._least = min_host_samples
        self._of: dict[int, float] = {}
        self._sorted: dict[int, list[float]] = {}
        for record, version, pfc in known:
            self.put(record, version, pfc)

    def put(self, record: int, version: int, pfc: Average) -> None:
        values = self._sorted.setdefault(version, [])
        old = self._of.pop(record, None)
        if old is not None:
            del values[bisect_left(values, old)]
        if pfc.avg and pfc.n >= self._least:
            insort(values, pfc.avg)
            self._of[record] = pfc.avg

    def median(self, version: int) -> float | None:
        values = self._sorted.get(version)
        if not values:
            return None
        place, is_between = divmod(len(values) - 1, 2)
        low = values[place]
        return low + 0.5 * (values[place + 1] - low) if is_between else low


class Run:
    """One of the two: settings, and the statistics as they are by now."""

    def __init__(self, settings: Settings, known: Iterable[tuple[int, int, Average]]) -> None:
        self.settings = settings
        self.app = copy(settings.app)
        self.least: float | None = None
        self.versions: dict[int, VersionState] = {}
        self.records: dict[int, HostVersionFacts] = {}
        self.credits: dict[int, float] = {}
        self.waiting: set[int] = set()
        known = (record for record in known if record[1] not in settings.reset)
        self.medians = Medians(self.app.rules.min_host_samples, known) if settings.uses_medians else None

    def start_version(self, id_: int, state: VersionState, at: float) -> None:
        kept = self.settings.kept(id_, at)
        if kept is not None:
            state = kept.version
        self.versions[id_] = NO_STATISTICS if id_ in self.settings.reset else state

    def start_record(self, id_: int, version: int, record: HostVersionFacts, at: float) -> None:
        kept = self.settings.kept(version, at)
        if kept is not None or version in self.settings.reset:
            # What had no sample then is empty too.
            of = HostVersionFacts() if kept is None else kept.records.get(id_, HostVersionFacts())
            record = replace(
                record,
                pfc=copy(of.pfc),
                clean_pfc=copy(of.clean_pfc),
                recent_pfc=copy(of.recent_pfc),
                waiting_pfc=copy(of.waiting_pfc),
                samples_since=of.samples_since,
            )
        self.records[id_] = record

    def facts_of(self, id_: int, state: VersionState) -> VersionFacts:
        avg = state.avg if self.medians is None else self.medians.median(id_)
        fixed = self.settings.versions.get(id_) or VersionFacts(id_)
        return replace(
            fixed,
            pfc=Average(state.n, avg),
            pfc_scale=state.scale,
            is_counted=state.is_counted,
            samples=[],
            grants=[],
        )

    def feed(self) -> None:
        """As ``credit.statistics.feeder`` renews scales."""
        facts = [self.facts_of(id_, state) for id_, state in sorted(self.versions.items())]
        found = normalise(facts, self.app.rules)
        for id_, state in self.versions.items():
            scale = found.scales.get(id_, state.scale)
            if scale is not None and not 0 < scale < MAX_SCALE:
                scale = None
            is_counted = id_ in found.counted if found.counted else state.is_counted
            self.versions[id_] = state._replace(scale=scale, is_counted=is_counted)
        least = found.min_avg_pfc
        if least is not None and 0 < least < MAX_SCALE:
            self.least = least

    def add_samples(self, read: Iterable[VersionFacts]) -> None:
        for version in read:
            if not version.samples:
                continue
            state = self.versions[version.id]
            pfc = Average(state.n, state.avg)
            for sample in version.samples:
                pfc.add(sample, self.app.rules.version_average, self.app.usual_sample)
            self.versions[version.id] = state._replace(n=pfc.n, avg=pfc.avg)

    def decide(
        self, batch: Batch, records: Sequence[HostVersionFacts], read: Mapping[int, VersionFacts], least: float | None
    ) -> list[Decided]:
        """What becomes of each result of a pass; of one that is wrong, nothing."""
        self.app.min_avg_pfc = least
        facts = [_facts(row, records, read) for row in batch.results]
        decided = [Decided() for _ in facts]
        odd = self._odd(batch, facts)
        for number, (id_, *sizes, is_late, canonical) in enumerate(batch.workunits):
            begin, end = batch.bounds[number], batch.bounds[number + 1]
            workunit = WorkunitFacts(*sizes)
            if id_ in odd or id_ in self.waiting:
                self.waiting.add(id_)
            elif is_late:
                # Its first decision may be older than what was replayed.
                self._decide_late(batch, facts, decided, workunit, (begin, end), self.credits.get(id_, canonical))
            else:
                self._decide_set(batch, facts, decided, workunit, (begin, end), id_)
        self.add_samples(read.values())
        return decided

    def _odd(self, batch: Batch, facts: Sequence[ResultFacts]) -> set[int]:
        """Workunits of single results that another would have to confirm."""
        if self.app.target_nresults < 2:
            return set()
        odd = set()
        for number, (id_, est, _, quorum, *_, is_late, _) in enumerate(batch.workunits):
            begin, end = batch.bounds[number], batch.bounds[number + 1]
            if quorum != 1 or is_late or end - begin != 1 or not batch.is_valid[begin]:
                continue
            result = facts[begin]
            average = None if result.version is None else result.version.pfc
            sample = result.elapsed_secs * result.peak_flops / est
            if needs_confirmation(self.app, sample, result.host_version, average, batch.at):
                odd.add(id_)
        return odd

    def _decide_set(
        self,
        batch: Batch,
        facts: Sequence[ResultFacts],
        decided: list[Decided],
        workunit: WorkunitFacts,
        bounds: tuple[int, int],
        id_: int,
    ) -> None:
        valid, wrong = batch.split(range(*bounds))
        invalid = [facts[place].host_version for place in wrong]
        if not valid:
            count_only_invalid(self.app, workunit, invalid, batch.at)
            return
        decision = decide_set(self.app, workunit, [facts[place] for place in valid], invalid, batch.at)
        self.credits[id_] = decision.grant.credit
        _keep(decided, facts, valid, decision)

    def _decide_late(
        self,
        batch: Batch,
        facts: Sequence[ResultFacts],
        decided: list[Decided],
        workunit: WorkunitFacts,
        bounds: tuple[int, int],
        credit: float,
    ) -> None:
        news = range(*bounds)
        for group in [[n] for n in news] if self.app.rules.decides_late_singly else [news]:
            valid, wrong = batch.split(group)
            invalid = [facts[place].host_version for place in wrong]
            results = [facts[place] for place in valid]
            known = 0.0 if credit != credit else credit
            _keep(decided, facts, valid, decide_late(self.app, workunit, results, invalid, known, batch.at))


def _keep(decided: list[Decided], facts: Sequence[ResultFacts], places: Sequence[int], decision: Decision) -> None:
    for place, claim in zip(places, decision.claims, strict=True):
        credit = max(decision.grant.credit, facts[place].partial_credit)
        decided[place] = Decided(credit, decision.grant, claim)


class Batch:
    """A logged pass as lists; the results of workunit ``n`` are from ``bounds[n]`` to ``bounds[n + 1]``."""

    def __init__(self, logged: PassFacts) -> None:
        self.at = logged.at
        self.workunits: list[Any] = logged.workunits.tolist()
        self.results: list[Any] = logged.results.tolist()
        count = len(self.workunits)
        self.bounds: list[int] = np.searchsorted(logged.results["workunit"], np.arange(count + 1)).tolist()
        self.is_valid: list[int] = logged.results["is_valid"].tolist()

    def split(self, places: Iterable[int]) -> tuple[list[int], list[int]]:
        """Those that are valid, and those that are not."""
        valid: list[int] = []
        wrong: list[int] = []
        for place in places:
            (valid if self.is_valid[place] else wrong).append(place)
        return valid, wrong


def _facts(
    row: Sequence[Any], records: Sequence[HostVersionFacts], versions: Mapping[int, VersionFacts]
) -> ResultFacts:
    (_, _, record, version, _, anonymous, outlier, elapsed, peak, sent, received, cpu, p_fpops) = row[:13]
    counted, per_cpu_sec, partial_elapsed, partial_credit, _ = row[13:]
    return ResultFacts(
        None if record < 0 else records[record],
        versions.get(version),
        elapsed,
        peak,
        sent,
        received,
        bool(anonymous),
        cpu,
        bool(outlier),
        p_fpops,
        counted,
        per_cpu_sec,
        partial_elapsed,
        partial_credit,
    )
