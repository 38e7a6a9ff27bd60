"""Replays a trace in the database: this site's validator decides what BOINC's decided, by the deployed formulas.

Only the first queue of each app is replayed. Later ones differ by what is no formula there
(docs/explanation/credit.md): what a validator process keeps in memory, when it writes, and updates that it loses. Where
such a lost update affects a first queue, the claims and grants after it are counted apart. Everything is rolled back at
the end.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from django.contrib.auth.hashers import make_password
from django.db import transaction

from credit.models import (
    MAX_CREDIT,
    MAX_RESULTS_PER_WORKUNIT,
    App,
    AppVersion,
    HostAppVersion,
    Outcome,
    Platform,
    ProcessorType,
    Result,
    RuleSet,
    ServerState,
    ValidateState,
    Workunit,
)
from credit.validator.passes import run_pass
from portal.models import Host, User
from tests.support.boinc_traces.comparison import TOLERANCE, Comparison, relative_difference
from tests.support.boinc_traces.traces import (
    ANONYMOUS_BASE,
    Row,
    Trace,
    TraceEvent,
    TracePhase,
    TraceResult,
    TraceState,
)

_AGREED: Final = b"all that agree: "
_ANONYMOUS: Final = {
    -1: ProcessorType.APPLE,
    -2: ProcessorType.CPU,
    -3: ProcessorType.NVIDIA,
    -4: ProcessorType.ATI,
    -5: ProcessorType.INTEL,
}
_GPU_WORDS: Final = {"cuda": ProcessorType.NVIDIA, "nvidia": ProcessorType.NVIDIA, "ati": ProcessorType.ATI}


Key = tuple[int, int]


@dataclass(slots=True)
class DatabaseReplay:
    """The outcome. ``nbehind_lost``: values not compared, because they depend on an update that BOINC lost."""

    comparison: Comparison = field(default_factory=Comparison)
    napps: int = 0
    nworkunits: int = 0
    nbehind_lost: int = 0


class BoincRecords:
    """Which of BOINC's host records are not ours any more, as its validator goes through a queue.

    It renames a record of the host's to a version that has none, with all that was added meanwhile, and loses the
    update that comes with it; of two results of one record in a set it keeps the second's update only. Our validator
    gives the new version a copy of the older one's record at the start of a pass, and loses nothing.
    """

    def __init__(self, state: TraceState) -> None:
        self.state = state
        self.keys = set(state.hosts)
        self.moved: set[Key] = set()
        self.lost: set[Key] = set()

    def take(self, keys: Sequence[Key], is_late: bool) -> bool:
        """For each result of one workunit, in order: whether its claim was made from numbers that differ from ours."""
        is_behind = bool(self.lost.intersection(keys))
        for key in keys:
            if key in self.keys or key[1] not in self.state.versions:
                continue
            older = self._renamed(key)
            if older is not None:
                self.keys.remove(older)
                is_behind |= older in self.moved or self._number(older) > self._number(key)
                is_behind |= is_late and keys.count(key) > 1
                self.lost |= {key, older}
            self.keys.add(key)
        if not is_late:
            self.lost |= {key for key in keys if keys.count(key) > 1}
        self.moved.update(keys)
        return is_behind

    def _renamed(self, key: Key) -> Key | None:
        """The record of the same host whose version differs from this one in its number only; the newest."""
        candidates = [
            (host, id_) for host, id_ in self.keys if host == key[0] and self._kind(id_) == self._kind(key[1])
        ]
        return max(candidates, key=self._number, default=None)

    def _kind(self, id_: int) -> tuple[float, float, str] | None:
        row = self.state.versions.get(id_)
        return None if row is None else (row["appid"], row["platformid"], self.state.plan_classes[id_])

    def _number(self, key: Key) -> float:
        return self.state.versions[key[1]]["version_num"]


class _RollBackError(Exception):
    """The end of the replay."""


def replay(trace: Trace) -> DatabaseReplay:
    """Load the first queue of each app, validate it, compare, and leave the database as it was."""
    done = DatabaseReplay()
    try:
        with transaction.atomic():
            for phase in _first_queues(trace):
                _QueueReplay(trace, phase, done).run()
            raise _RollBackError
    except _RollBackError:
        return done


def _first_queues(trace: Trace) -> Iterator[TracePhase]:
    seen: set[int] = set()
    for phase in trace.phases:
        if phase.kind == "validate" and phase.app_id not in seen:
            seen.add(phase.app_id)
            yield phase


class _QueueReplay:
    """One queue of one app."""

    def __init__(self, trace: Trace, phase: TracePhase, done: DatabaseReplay) -> None:
        self.phase = phase
        self.done = done
        self.events = trace.events.get(phase.number, [])
        self.state = trace.states[phase.number - 1]
        # The id of each of the trace's hosts, versions and results in our tables
        self.hosts: dict[int, int] = {}
        self.versions: dict[int, AppVersion] = {}
        self.results: dict[int, tuple[TraceResult, Result]] = {}

    def run(self) -> None:
        self.make_app()
        self.make_hosts()
        self.make_records()
        canonical = [self.make_workunit(event) for event in self.events]
        # How long after the last report does not matter: the deployed formulas do not use it.
        now = max((result.received_at for event in self.events for result in event.results), default=0.0)
        report = run_pass(self.app.pk, dt.datetime.fromtimestamp(now + 3600, dt.UTC), len(self.events) + 1)
        self.done.napps += 1
        self.done.nworkunits += report.nworkunits
        self.compare(canonical)

    def make_app(self) -> None:
        row = self.state.apps[self.phase.app_id]
        self.app = App.objects.create(
            name=f"replay-{self.phase.app_id}-{self.phase.number}",
            user_friendly_name="Replay of a trace",
            rule_set=RuleSet.DEPLOYED,
            host_scale_check=bool(row["host_scale_check"]),
            min_avg_pfc=row["min_avg_pfc"] or None,
            # There 0 means that there is no maximum.
            max_granted_credit=MAX_CREDIT if self.phase.max_granted_credit == 0 else self.phase.max_granted_credit,
            adaptive_replication=row["target_nresults"] > 1,
        )
        # For results of versions that are in no table: here they are in another app's.
        self.elsewhere = App.objects.create(name=f"{self.app.name}-else", user_friendly_name="Elsewhere")
        for id_, version in self.state.versions.items():
            if int(version["appid"]) == self.phase.app_id:
                self.versions[id_] = self.make_version(self.app, version, self.state.plan_classes[id_])

    def make_version(self, app: App, row: Row, plan_class: str) -> AppVersion:
        types = [type_ for word, type_ in _GPU_WORDS.items() if word in plan_class]
        return AppVersion.objects.create(
            app=app,
            platform=Platform.objects.get_or_create(name=f"replay-{int(row['platformid'])}")[0],
            version_num=int(row["version_num"]),
            plan_class=plan_class,
            processor_type=types[0] if types else ProcessorType.CPU,
            gpu_usage=1.0 if types else 0.0,
            pfc_n=int(row["pfc_n"]),
            pfc_avg=row["pfc_avg"] if row["pfc_n"] else None,
            pfc_scale=row["pfc_scale"] or None,
        )

    def make_hosts(self) -> None:
        owner = User.objects.create(email=f"{self.app.name}@example.org", name="Replay", password=make_password(None))
        wanted = sorted({result.host_id for event in self.events for result in event.results})
        made = Host.objects.bulk_create([Host(owner=owner, domain_name=f"replay-{id_}") for id_ in wanted])
        self.hosts = {id_: host.pk for id_, host in zip(wanted, made, strict=True)}

    def make_records(self) -> None:
        for (host_id, general_id), row in self.state.hosts.items():
            if host_id not in self.hosts:
                continue
            app_id, kind = divmod(general_id, ANONYMOUS_BASE)
            if general_id >= ANONYMOUS_BASE and app_id == self.phase.app_id and -kind in _ANONYMOUS:
                self.make_record(host_id, row, app=self.app, processor_type=_ANONYMOUS[-kind])
            elif general_id in self.versions:
                self.make_record(host_id, row, app=self.app, app_version=self.versions[general_id])
            elif general_id < ANONYMOUS_BASE and general_id not in self.state.versions:
                self.make_record(host_id, row, app=self.elsewhere, app_version=self.unknown_version(general_id))

    def unknown_version(self, id_: int) -> AppVersion:
        if id_ not in self.versions:
            platform = Platform.objects.get_or_create(name="replay-unknown")[0]
            self.versions[id_] = AppVersion.objects.create(app=self.elsewhere, platform=platform, version_num=id_)
        return self.versions[id_]

    def make_record(self, host_id: int, row: Row, **key: object) -> None:
        values: dict[str, float | None] = {}
        for name in ("pfc", "et", "turnaround"):
            values[f"{name}_n"] = int(row[f"{name}_n"])
            values[f"{name}_avg"] = row[f"{name}_avg"] if row[f"{name}_n"] else None
            if name != "pfc":
                values[f"{name}_var"] = row[f"{name}_var"] if row[f"{name}_n"] else None
                values[f"{name}_q"] = row[f"{name}_q"]
        HostAppVersion.objects.create(
            host_id=self.hosts[host_id],
            consecutive_valid=int(row["consecutive_valid"]),
            max_jobs_per_day=int(row["max_jobs_per_day"]),
            **key,
            **values,
        )

    def make_workunit(self, event: TraceEvent) -> Workunit:
        # There a majority of the quorum decides, here all of it; the deployed formulas do not use the quorum.
        nvalid = sum(result.state_after == ValidateState.VALID for result in event.results)
        min_quorum = min(event.min_quorum, nvalid) if event.canonical_after and nvalid else event.min_quorum
        workunit = Workunit.objects.create(
            app=self.app,
            name=f"{self.app.name}_{event.seq}",
            fpops_est=event.fpops_est,
            fpops_bound=max(event.fpops_bound, event.fpops_est),
            min_quorum=min_quorum,
            target_nresults=max(event.target_nresults, min_quorum),
            max_total_results=MAX_RESULTS_PER_WORKUNIT,
            max_success_results=MAX_RESULTS_PER_WORKUNIT,
            need_validate=True,
        )
        if event.is_late:
            canonical = self.make_result(workunit, event.results[0], state=ValidateState.VALID)
            canonical.validate_state = ValidateState.VALID
            workunit.canonical_result = canonical
            workunit.canonical_credit = event.canonical_granted
            workunit.save()
        for result in event.results:
            self.results[result.id] = (result, self.make_result(workunit, result))
        return workunit

    def make_result(self, workunit: Workunit, result: TraceResult, state: int = ValidateState.INIT) -> Result:
        version = self.versions.get(result.app_version_id)
        anonymous = result.app_version_id < 0
        is_known = anonymous or version is not None
        kept_host = self.hosts[result.host_id] if is_known and self.has_record(result) else None
        digests: dict[int, bytes | None] = {ValidateState.VALID: _AGREED, ValidateState.INVALID: None}
        digest = digests.get(result.state_after, f"{result.id:016}".encode())
        return Result.objects.create(
            workunit=workunit,
            app=self.app,
            name=f"{workunit.name}_{result.id}_{state}",
            server_state=ServerState.OVER,
            outcome=Outcome.SUCCESS,
            validate_state=state,
            host_id=kept_host,
            app_version=None if kept_host is None else version,
            processor_type=_ANONYMOUS.get(result.app_version_id, ProcessorType.CPU),
            peak_flops=result.peak_flops,
            sent_at=dt.datetime.fromtimestamp(result.sent_at, dt.UTC),
            received_at=dt.datetime.fromtimestamp(result.received_at, dt.UTC),
            elapsed_secs=result.elapsed_secs,
            cpu_secs=result.cpu_secs,
            is_runtime_outlier=result.is_runtime_outlier,
            output_digest=_AGREED if state == ValidateState.VALID else digest,
        )

    def has_record(self, result: TraceResult) -> bool:
        """Whether BOINC finds, or makes, a record for it."""
        return self.record_key(result) in self.state.hosts or result.app_version_id in self.state.versions

    def record_key(self, result: TraceResult) -> tuple[int, int]:
        id_ = result.app_version_id
        return result.host_id, id_ if id_ >= 0 else self.phase.app_id * ANONYMOUS_BASE - id_

    def compare(self, workunits: list[Workunit]) -> None:
        """In the order handled. Values after a lost update are counted apart."""
        history = BoincRecords(self.state)
        stored = Result.objects.in_bulk([row.pk for _, row in self.results.values()])
        for event, workunit in zip(self.events, workunits, strict=True):
            rows = [stored[self.results[result.id][1].pk] for result in event.results]
            keys = [self.record_key(result) for result in event.results]
            is_behind = history.take(keys, event.is_late)
            for result, row in zip(event.results, rows, strict=True):
                self.compare_result(result, row, is_behind)
            workunit.refresh_from_db()
            if not event.is_late:
                self.compare_number("credit of a workunit", workunit.canonical_credit or 0.0, event.credit, is_behind)

    def compare_result(self, result: TraceResult, row: Result, is_behind: bool) -> None:
        comparison = self.done.comparison
        # There a result that failed its own check is invalid too; here it is an error like others.
        state = ValidateState.INVALID if row.outcome == Outcome.VALIDATE_ERROR else row.validate_state
        comparison.word("verdict", str(state), str(result.state_after))
        mode = None if row.claimed_pfc is None else "approx" if row.is_approximate else "normal"
        if not is_behind:
            comparison.word("mode of a claim", mode, result.mode)
        self.compare_number("claim", row.claimed_credit, result.claimed, is_behind)
        self.compare_number("grant", row.granted_credit or 0.0, result.granted, is_behind)

    def compare_number(self, quantity: str, computed: float | None, expected: float | None, is_behind: bool) -> None:
        if is_behind and relative_difference(computed, expected) > TOLERANCE:
            self.done.nbehind_lost += 1
            return
        self.done.comparison.number(quantity, computed, expected)
