"""Replays a trace of BOINC's validator and feeder through the engine, and compares everything that it computes.

The engine has the formulas. This module has what else shaped the traces: a validator process that keeps the version
rows that it once read, statistics that are written when the queue is empty, and updates that are lost. Our validator
does none of this. The trace gives the inputs, the verdicts (which results are valid, whether there is a canonical one)
and the times at which version rows were written.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy, deepcopy
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from credit.engine.averages import Average, AverageWithVariance
from credit.engine.facts import AppFacts, HostVersionFacts, ProcessorType, ResultFacts, VersionFacts
from credit.engine.normalisation import renew_scales
from credit.engine.passes import ComparedWorkunit, PassDecisions, decide_batch
from credit.engine.recent_credit import add_credit_as_deployed
from credit.engine.rules import Rules
from credit.engine.states import ValidateState
from tests.support.boinc_traces.comparison import Comparison
from tests.support.boinc_traces.traces import (
    ANONYMOUS_BASE,
    Row,
    Trace,
    TraceEvent,
    TracePhase,
    TraceResult,
    TraceState,
)

GPU_WORDS: Final = ("cuda", "nvidia", "ati", "amd", "intel_gpu", "apple_gpu")
"""BOINC's feeder takes a version whose plan class contains one of these for a GPU version ("native" has "ati")."""
WRITE_ATTEMPTS: Final = 10


@dataclass(slots=True)
class VersionRow:
    """A version's row in the database: its statistics and its recent average credit (never any: time None)."""

    facts: VersionFacts
    app_id: int
    expavg_credit: float
    expavg_time: float | None


@dataclass(slots=True)
class HostCopy:
    """A host record as read for one result: a copy, and the row that it is written back to (None: none)."""

    record: HostVersionFacts
    key: tuple[int, int] | None
    before: HostVersionFacts


@dataclass(slots=True)
class Replay:
    """One run of a trace through the engine; ``run`` returns the comparisons."""

    trace: Trace
    rules: Rules
    comparison: Comparison = field(default_factory=Comparison)
    apps: dict[int, Row] = field(default_factory=dict)
    versions: dict[int, VersionRow] = field(default_factory=dict)
    hosts: dict[tuple[int, int], HostVersionFacts] = field(default_factory=dict)
    # The versions as read by each validator process, by (process, app)
    cached: dict[tuple[str, int], dict[int, VersionRow]] = field(default_factory=dict)
    granted: dict[int, float] = field(default_factory=dict)

    def run(self) -> Comparison:
        """Replays all phases in order; the state at the start is the trace's."""
        start = self.trace.states[0]
        self.apps = {key: dict(row) for key, row in start.apps.items()}
        self.versions = {key: _version_row(row, start.plan_classes[key]) for key, row in start.versions.items()}
        self.hosts = {key: _host_record(row) for key, row in start.hosts.items()}
        before = start
        for phase in self.trace.phases:
            after = self.trace.states[phase.number]
            if phase.kind == "validate":
                self._drain(phase, after)
            elif phase.kind == "feeder":
                self._feed()
            else:
                self._load(before, after)
            self._compare(after)
            before = after
        return self.comparison

    def _load(self, before: TraceState, after: TraceState) -> None:
        """Rows that the scheduler put in between two phases."""
        for key in after.hosts.keys() - before.hosts.keys():
            self.hosts[key] = _host_record(after.hosts[key])
        for app_id in after.apps.keys() - before.apps.keys():
            self.apps[app_id] = dict(after.apps[app_id])
        for version_id in after.versions.keys() - before.versions.keys():
            self.versions[version_id] = _version_row(after.versions[version_id], after.plan_classes[version_id])

    def _feed(self) -> None:
        for app_id, app in self.apps.items():
            facts = [row.facts for row in self.versions.values() if row.app_id == app_id]
            read = AppFacts(app_id, self.rules, app["min_avg_pfc"] or None)
            renew_scales(read, facts)
            app["min_avg_pfc"] = _as_stored(read.min_avg_pfc or 0.0)
            for version in facts:
                version.pfc_scale = _as_stored(version.pfc_scale)

    def _drain(self, phase: TracePhase, after: TraceState) -> None:
        """One validator process empties an app's queue, then writes its versions' statistics."""
        app = self._app_facts(phase)
        cache = self.cached.setdefault((phase.process, phase.app_id), {})
        for event in self.trace.events.get(phase.number, []):
            if event.is_late:
                self._late(event, app, cache)
            else:
                self._set(event, app, cache)
        for version_id, kept in cache.items():
            stored = after.versions.get(version_id)
            if stored is not None and (kept.facts.samples or kept.facts.grants):
                cache[version_id] = self._written(kept, stored["expavg_time"])

    def _app_facts(self, phase: TracePhase) -> AppFacts:
        row = self.apps.get(phase.app_id) or self.trace.states[phase.number].apps[phase.app_id]
        rules = self.rules
        if phase.max_granted_credit is not None:
            rules = replace(rules, max_granted_credit=phase.max_granted_credit or None)
        return AppFacts(
            phase.app_id,
            rules,
            row["min_avg_pfc"] or None,
            bool(row["host_scale_check"]),
            target_nresults=int(row["target_nresults"]),
        )

    def _set(self, event: TraceEvent, app: AppFacts, cache: dict[int, VersionRow]) -> None:
        """All records are read before any is written: of two results of one record, the second write wins."""
        copies = [self._read(event, result) for result in event.results]
        facts = [self._facts(result, host, cache) for result, host in zip(event.results, copies, strict=True)]
        workunit = _workunit(event, event.results)
        decided = _decide(app, workunit, facts, max(result.received_at for result in event.results))
        credit = next((credit for *_, credit in decided.workunits if credit is not None), 0.0)
        self._compare_claims(event.results, decided)
        self.comparison.credit("credit of a workunit", credit, event.credit)
        for result, host in zip(event.results, copies, strict=True):
            self._write(host)
            self._grant(result, credit if result.state_after == ValidateState.VALID else 0.0)

    def _late(self, event: TraceEvent, app: AppFacts, cache: dict[int, VersionRow]) -> None:
        """Each result separately; it gets the same grant as the canonical one."""
        canonical = self.granted.get(event.canonical_before, event.canonical_granted or 0.0)
        for result in event.results:
            host = self._read(event, result)
            workunit = _workunit(event, [result], canonical)
            facts = [self._facts(result, host, cache)]
            self._compare_claims([result], _decide(app, workunit, facts, result.received_at))
            self._write(host)
            self._grant(result, canonical if result.state_after == ValidateState.VALID else 0.0)

    def _grant(self, result: TraceResult, credit: float) -> None:
        if result.state_after != ValidateState.VALID and result.claimed is not None:
            self.comparison.number("claim", None, result.claimed)
        self.granted[result.id] = credit
        self.comparison.number("grant of a result", credit, result.granted)

    def _compare_claims(self, results: Sequence[TraceResult], decided: PassDecisions) -> None:
        for place, claim in zip(decided.places, decided.claims, strict=True):
            if claim is None:
                continue
            result = results[place]
            mode = None if claim.claimed_pfc is None else "approx" if claim.is_approximate else "normal"
            self.comparison.number("claim", claim.claimed_credit, result.claimed)
            self.comparison.word("mode of a claim", mode, result.mode)

    def _facts(self, result: TraceResult, host: HostCopy | None, cache: dict[int, VersionRow]) -> ResultFacts:
        """A process reads a version at its first valid result, and keeps it."""
        version_id = result.app_version_id
        is_valid = result.state_after == ValidateState.VALID
        if is_valid and version_id in self.versions and version_id not in cache:
            cache[version_id] = _private(self.versions[version_id])
        row = cache.get(version_id)
        return ResultFacts(
            host.record if host else None,
            row.facts if row else None,
            result.elapsed_secs,
            result.peak_flops,
            result.sent_at,
            result.received_at,
            is_anonymous=version_id < 0,
            cpu_secs=result.cpu_secs,
            is_runtime_outlier=result.is_runtime_outlier,
        )

    def _read(self, event: TraceEvent, result: TraceResult) -> HostCopy | None:
        """The host's record, or that of the newest other version of the same kind, which is renamed, or a new one.

        The copy of a renamed record is written to the row of the old name, which is gone: that update is lost.
        """
        version_id = result.app_version_id
        general_id = version_id if version_id >= 0 else event.app_id * ANONYMOUS_BASE - version_id
        key = (result.host_id, general_id)
        if key not in self.hosts:
            if version_id < 0 or version_id not in self.versions:
                return None
            older = self._older_record(result.host_id, self.versions[version_id])
            if older is not None:
                record = self.hosts[key] = self.hosts.pop(older)
                return HostCopy(deepcopy(record), None, record)
            self.hosts[key] = HostVersionFacts()
        record = self.hosts[key]
        return HostCopy(deepcopy(record), key, record)

    def _older_record(self, host_id: int, version: VersionRow) -> tuple[int, int] | None:
        """The row of the same host whose version differs from this one in its number only; the newest."""

        def kind(row: VersionRow) -> tuple[int, int, str]:
            return row.app_id, row.facts.platform_id, row.facts.plan_class

        candidates = [
            (row.facts.version_num, (host_id, version_id))
            for version_id, row in self.versions.items()
            if kind(row) == kind(version) and (host_id, version_id) in self.hosts
        ]
        return max(candidates)[1] if candidates else None

    def _write(self, host: HostCopy | None) -> None:
        if host is not None and host.key is not None and host.record != host.before:
            self.hosts[host.key] = _stored(host.record)

    def _written(self, kept: VersionRow, written_at: float) -> VersionRow:
        """Adds what a process collected to what it had read, and writes the sum if the row has not changed since.

        Else the row is read again: only so does a running process learn of a new scale. Returns what it now keeps.
        """
        samples, grants = kept.facts.samples, kept.facts.grants
        stored = self.versions[kept.facts.id]
        for _ in range(WRITE_ATTEMPTS):
            read = (kept.facts.pfc.n, kept.expavg_credit, kept.facts.pfc_scale or 0.0)
            for sample in samples:
                kept.facts.pfc.add(sample, self.rules.version_average)
            for sent_at, credit in grants:
                kept.expavg_credit = add_credit_as_deployed(
                    kept.expavg_credit, kept.expavg_time, written_at, credit, sent_at, self.rules
                )
                kept.expavg_time = written_at
            if (
                stored.facts.pfc.n == read[0]
                and abs(stored.expavg_credit - read[1]) < 1e-4
                and abs((stored.facts.pfc_scale or 0.0) - read[2]) < 1e-6
            ):
                stored.facts.pfc = Average(kept.facts.pfc.n, _as_stored(kept.facts.pfc.avg))
                stored.expavg_credit, stored.expavg_time = _as_stored(kept.expavg_credit), kept.expavg_time
                break
            kept = _private(stored)
        kept.facts.samples, kept.facts.grants = [], []
        return kept

    def _compare(self, after: TraceState) -> None:
        """All three tables after a phase."""
        comparison = self.comparison
        comparison.rows("app", self.apps.keys(), after.apps.keys())
        comparison.rows("version", self.versions.keys(), after.versions.keys())
        comparison.rows("host record", self.hosts.keys(), after.hosts.keys())
        for app_id, row in after.apps.items():
            if (app := self.apps.get(app_id)) is not None:
                comparison.number("app min_avg_pfc", app["min_avg_pfc"], row["min_avg_pfc"])
        for version_id, row in after.versions.items():
            if (version := self.versions.get(version_id)) is not None:
                for name, value in _version_columns(version).items():
                    comparison.number(f"version {name}", value, row[name])
        for key, row in after.hosts.items():
            if (record := self.hosts.get(key)) is not None:
                for name, value in _host_columns(record).items():
                    comparison.number(f"host record {name}", value, row[name])


def report(trace: Trace, rules: str, comparison: Comparison) -> list[str]:
    """What was replayed by these rules, and how close it comes, line by line."""
    events = [event for group in trace.events.values() for event in group]
    nresults = sum(len(event.results) for event in events)
    return [
        f"{len(trace.phases)} phases, {len(events)} workunits handled, {nresults} results",
        f"{'quantity':<32}{'compared':>10}{'different':>11}{'worst (relative)':>18}",
        *(f"{name:<32}{t.count:>10}{t.ndiffering:>11}{t.worst:>18.2g}" for name, t in comparison.tallies.items()),
        f"credit of all workunits: {comparison.computed_credit:.6f} by the {rules} rules, "
        f"{comparison.expected_credit:.6f} in the trace",
        f"worst relative difference: {comparison.worst:.3g}",
    ]


_Number = TypeVar("_Number", float, float | None)


def _as_stored(number: _Number) -> _Number:
    """As BOINC writes numbers into its statements: 16 digits.

    Nearly equal samples need it: their deviations are made of last digits only.
    """
    return number if number is None else float(f"{number:.15e}")


def _stored(record: HostVersionFacts) -> HostVersionFacts:
    """A host's record as it is read back."""
    record.pfc.avg = _as_stored(record.pfc.avg)
    for average in (record.et, record.turnaround):
        average.avg, average.var, average.q = _as_stored(average.avg), _as_stored(average.var), _as_stored(average.q)
    return record


def _workunit(
    event: TraceEvent, results: Sequence[TraceResult], earlier_credit: float | None = None
) -> ComparedWorkunit:
    return ComparedWorkunit(
        event.fpops_est,
        event.fpops_bound,
        event.min_quorum,
        event.target_nresults,
        places=range(len(results)),
        states=[result.state_after for result in results],
        earlier_credit=earlier_credit,
    )


def _decide(app: AppFacts, workunit: ComparedWorkunit, facts: Sequence[ResultFacts], now: float) -> PassDecisions:
    """A pass over one workunit. A trace has no other result that could confirm a single one, as some rules want."""
    decided = decide_batch(app, [workunit], facts, now)
    return decide_batch(replace(app, target_nresults=1), [workunit], facts, now) if decided.waiting_ids else decided


def _private(row: VersionRow) -> VersionRow:
    """A process's own copy of a row, with nothing collected yet."""
    facts = replace(row.facts, pfc=copy(row.facts.pfc), samples=[], grants=[])
    return replace(row, facts=facts)


def _average(n: float, avg: float) -> Average:
    return Average(int(n), avg if n or avg else None)


def _average_with_variance(row: Row, name: str) -> AverageWithVariance:
    n, avg = int(row[f"{name}_n"]), row[f"{name}_avg"]
    known = n or avg
    return AverageWithVariance(n, avg if known else None, row[f"{name}_var"] if known else None, row[f"{name}_q"])


def _version_row(row: Row, plan_class: str) -> VersionRow:
    is_gpu = any(word in plan_class for word in GPU_WORDS)
    facts = VersionFacts(
        int(row["id"]),
        _average(row["pfc_n"], row["pfc_avg"]),
        row["pfc_scale"] or None,
        ProcessorType.NVIDIA if is_gpu else ProcessorType.CPU,
        platform_id=int(row["platformid"]),
        plan_class=plan_class,
        version_num=int(row["version_num"]),
    )
    return VersionRow(facts, int(row["appid"]), row["expavg_credit"], row["expavg_time"] or None)


def _host_record(row: Row) -> HostVersionFacts:
    return HostVersionFacts(
        _average(row["pfc_n"], row["pfc_avg"]),
        _average_with_variance(row, "et"),
        _average_with_variance(row, "turnaround"),
        consecutive_valid=int(row["consecutive_valid"]),
        max_jobs_per_day=int(row["max_jobs_per_day"]),
        n_jobs_today=int(row["n_jobs_today"]),
    )


def _version_columns(row: VersionRow) -> Row:
    return {
        "pfc_n": row.facts.pfc.n,
        "pfc_avg": row.facts.pfc.avg or 0.0,
        "pfc_scale": row.facts.pfc_scale or 0.0,
        "expavg_credit": row.expavg_credit,
    }


def _host_columns(record: HostVersionFacts) -> Row:
    columns: Row = {"pfc_n": record.pfc.n, "pfc_avg": record.pfc.avg or 0.0}
    for name, average in (("et", record.et), ("turnaround", record.turnaround)):
        columns[f"{name}_n"] = average.n
        columns[f"{name}_avg"] = average.avg or 0.0
        columns[f"{name}_var"] = average.var or 0.0
        columns[f"{name}_q"] = average.q
    columns["max_jobs_per_day"] = record.max_jobs_per_day
    columns["n_jobs_today"] = record.n_jobs_today
    columns["consecutive_valid"] = record.consecutive_valid
    return columns
