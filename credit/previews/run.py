"""One run of a replay: settings, and the statistics that move with each pass of the validator and run of the feeder.

Pure.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import numpy as np

from credit.engine.averages import Average
from credit.engine.explanation import Explanation
from credit.engine.facts import RESULT_NUMBERS, AppFacts, HostVersionFacts, ResultFacts, VersionFacts
from credit.engine.normalisation import renew_scales
from credit.engine.passes import ComparedWorkunit, add_samples, decide_batch
from credit.engine.states import ValidateState
from credit.statistics.pass_arrays import PassFacts

_VALID: Final = ValidateState.VALID.value
_INVALID: Final = ValidateState.INVALID.value


class VersionState(NamedTuple):
    """The statistics of a version that move. ``is_received``: its scale comes from other projects."""

    n: int
    avg: float | None
    scale: float | None
    is_counted: bool
    is_received: bool = False


class ReplacedStatistics(NamedTuple):
    """A version's statistics when they were replaced, at a time (Unix time), and its records' by number."""

    at: float
    version: VersionState
    records: Mapping[int, HostVersionFacts]


@dataclass(frozen=True, slots=True)
class Settings:
    """An app's settings, and what does not move in its ``versions`` (kind, number, whether withdrawn, factor from
    outside).

    ``reset``: versions whose statistics, and their hosts', start again. ``restored``: versions whose statistics are
    restored, as if they had never been replaced. ``uses_medians``: a version's average is the median of its hosts'.
    """

    app: AppFacts
    versions: Mapping[int, VersionFacts]
    uses_medians: bool = False
    reset: frozenset[int] = frozenset()
    restored: Mapping[int, ReplacedStatistics] = field(default_factory=dict)

    def restored_at(self, version: int, at: float) -> ReplacedStatistics | None:
        """Return the statistics to restore for this version, if they were replaced before then."""
        replaced = self.restored.get(version)
        return replaced if replaced is not None and at >= replaced.at else None


NO_STATISTICS: Final = VersionState(0, None, None, False)
"""A version whose statistics were reset."""


@dataclass(slots=True)
class ReplayedDecision:
    """A valid result in one run; empty if it would wait for another result to confirm it.

    ``credit``: its total. ``granted``, by ``grant_rule`` (``Grant.code``), may be less than partial credit. ``app``:
    with its settings in this run.
    """

    credit: float | None = None
    granted: float | None = None
    grant_rule: int | None = None
    claim: Explanation | None = None
    app: AppFacts | None = None


class Medians:
    """The median of each version's hosts' averages, like ``credit.statistics.sql.HOST_MEDIANS``."""

    def __init__(self, min_host_samples: int, averages: Iterable[tuple[int, int, Average]]) -> None:
        self._least = min_host_samples
        self._of: dict[int, float] = {}
        self._sorted: dict[int, list[float]] = {}
        for record, version, pfc in averages:
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
    """One of the two runs: settings, and the current statistics."""

    def __init__(self, settings: Settings, averages: Iterable[tuple[int, int, Average]]) -> None:
        self.settings = settings
        self.app = copy(settings.app)
        self.least: float | None = None
        self.versions: dict[int, VersionState] = {}
        self.records: dict[int, HostVersionFacts] = {}
        self.credits: dict[int, float] = {}
        self.waiting: set[int] = set()
        averages = (record for record in averages if record[1] not in settings.reset)
        self.medians = Medians(self.app.rules.min_host_samples, averages) if settings.uses_medians else None

    def start_version(self, id_: int, state: VersionState, at: float) -> None:
        replaced = self.settings.restored_at(id_, at)
        begin = NO_STATISTICS if id_ in self.settings.reset else state if replaced is None else replaced.version
        # Neither a reset nor its undo changes where a version's scale comes from.
        self.versions[id_] = begin._replace(is_received=state.is_received)

    def start_record(self, id_: int, version: int, record: HostVersionFacts, at: float) -> None:
        replaced = self.settings.restored_at(version, at)
        if replaced is not None or version in self.settings.reset:
            # A record without samples at that time is empty too.
            of = HostVersionFacts() if replaced is None else replaced.records.get(id_, HostVersionFacts())
            record = replace(
                record,
                pfc=copy(of.pfc),
                clean_pfc=copy(of.clean_pfc),
                recent_pfc=copy(of.recent_pfc),
                waiting_pfc=copy(of.waiting_pfc),
                samples_since=of.samples_since,
                peak_flops=of.peak_flops,
                lead_jobs=of.lead_jobs,
                et=copy(of.et),
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
            is_scale_received=state.is_received,
            samples=[],
            grants=[],
        )

    def feed(self) -> None:
        """Replay a run of the feeder."""
        versions = [self.facts_of(id_, state) for id_, state in sorted(self.versions.items())]
        self.app.min_avg_pfc = self.least
        renew_scales(self.app, versions)
        self.least = self.app.min_avg_pfc
        for version in versions:
            self.versions[version.id] = self.versions[version.id]._replace(
                scale=version.pfc_scale, is_counted=version.is_counted, is_received=version.is_scale_received
            )

    def decide(
        self,
        batch: ReplayedPass,
        records: Sequence[HostVersionFacts],
        read: Mapping[int, VersionFacts],
        least: float | None,
    ) -> list[ReplayedDecision]:
        """Replay a pass of the validator: return the decision on each result, empty for one that is wrong or waits.

        If a workunit waits, later results of it wait too.
        """
        self.app.min_avg_pfc = least
        facts = batch.facts(records, read)
        workunits = [workunit for workunit in batch.compared(self.credits) if workunit.id not in self.waiting]
        decided = decide_batch(self.app, workunits, facts, batch.at)
        self.waiting.update(decided.waiting_ids)
        self.credits |= {id_: credit for id_, _, credit in decided.workunits if credit is not None}
        for version in read.values():
            state = self.versions[version.id]
            average = Average(state.n, state.avg)
            add_samples(self.app, version, average)
            self.versions[version.id] = state._replace(n=average.n, avg=average.avg)
        by_place = [ReplayedDecision() for _ in facts]
        columns = decided.places, decided.grant_rules, decided.credits, decided.claims
        for place, rule, credit, claim in zip(*columns, strict=True):
            if credit is not None:
                by_place[place] = ReplayedDecision(
                    max(credit, facts[place].partial_credit), credit, rule, claim, self.app
                )
        return by_place


class ReplayedPass:
    """A logged pass as lists; the results of workunit ``n`` are from ``bounds[n]`` to ``bounds[n + 1]``."""

    def __init__(self, logged: PassFacts) -> None:
        self.at = logged.at
        self.logged = logged
        self.workunits: list[Any] = logged.workunits.tolist()
        self.results: list[Any] = logged.results.tolist()
        count = len(self.workunits)
        self.bounds: list[int] = np.searchsorted(logged.results["workunit"], np.arange(count + 1)).tolist()
        self.is_valid: list[int] = logged.results["is_valid"].tolist()

    def compared(self, credits: Mapping[int, float]) -> Iterator[ComparedWorkunit]:
        """Return the workunits as the engine takes them. ``credits``: granted earlier in the replay, by workunit.

        A first decision may be older than what was replayed; then it is as logged.
        """
        for number, row in enumerate(self.workunits):
            id_, est, bound, quorum, target, delay_bound, is_late, earlier, given, is_unconfirmed, is_own = row
            places = range(self.bounds[number], self.bounds[number + 1])
            states = [_VALID if self.is_valid[place] else _INVALID for place in places]
            credit = credits.get(id_, earlier) if is_late else None
            yield ComparedWorkunit(
                *(est, bound, quorum, target, delay_bound, given, id_, places, states),
                earlier_credit=credit,
                is_unconfirmed=bool(is_unconfirmed),
                is_own=bool(is_own),
            )

    def facts(self, records: Sequence[HostVersionFacts], versions: Mapping[int, VersionFacts]) -> list[ResultFacts]:
        """Return the results as the engine takes them, with these records, in the order logged, and versions."""
        columns = {name: self.logged.results[name].tolist() for name in ("record", "version", *RESULT_NUMBERS)}
        of = [None if place < 0 else records[place] for place in columns.pop("record")]
        return list(map(ResultFacts, of, map(versions.get, columns.pop("version")), *columns.values()))
