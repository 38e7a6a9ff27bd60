"""The validator: a pass validates a batch of an app's workunits, grants credit and updates the statistics.

One pass is one transaction with a fixed number of statements, whatever the size of the batch
(docs/explanation/validator.md). Any number of validators may work on an app: each takes workunits that no other has
locked.
"""

from __future__ import annotations

import datetime as dt
import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import structlog
from django.conf import settings
from django.contrib.postgres.expressions import ArraySubquery
from django.db import InterfaceError, OperationalError, connection, transaction
from django.db.models import Count, F, OuterRef, Subquery
from django.db.models.functions import Coalesce, Greatest, JSONObject, Least

from credit.engine.facts import HostVersionFacts, ResultFacts
from credit.engine.passes import ComparedWorkunit, PassDecisions, count_for_newer, decide_batch
from credit.engine.quorum import Verdict
from credit.engine.states import Outcome, ValidateState
from credit.models import MAX_RESULTS_PER_WORKUNIT, App, AppVersion, ConfirmingPair, Result, VersionAverage, Workunit
from credit.statistics.facts import app_facts, version_facts
from credit.statistics.host_records import create_missing, use_medians
from credit.validator import sql, writes
from credit.validator.binary import NO_TIME, pipelined
from credit.validator.check_set import SetChecker, wrong_places
from credit.validator.logged import PassLog
from credit.validator.prepared import PreparedAnswers, prepared_comparer
from credit.validator.reads import (
    Results,
    Workunits,
    hold_workunits,
    keys_of,
    lock_hosts,
    lock_records,
    lock_users,
    lock_workunits,
    places_of,
    read_newer,
    read_results,
    records_of,
    result_facts,
    with_newer,
)

log = structlog.get_logger(__name__)

_VALID: Final = ValidateState.VALID.value

CHUNK_BOUNDS: Final = (0, 1 / 12, 1 / 4, 1 / 2, 3 / 4, 1)
"""Where a batch is divided: each chunk is sent to the database while the next is computed.

The first is small, so that the database starts early.
"""
ATTEMPTS: Final = 50
"""Each attempt creates the records that its batch lacks; by then another validator may have taken the batch."""
BATCH_DIVISOR: Final = 8
"""A batch that failed is retried with this fraction of its workunits."""
RETRY_DELAY: Final = dt.timedelta(hours=1)
_LONGEST_FAULT: Final = 500
_COUNTS: Final = "min_quorum", "target_nresults", "max_success_results"


@dataclass(slots=True)
class PassReport:
    """The result of a pass.

    ``nfaults``: workunits whose outputs could not be compared; they are retried later. ``nwaiting``: workunits whose
    results another one has to confirm.
    """

    nworkunits: int = 0
    ndecided: int = 0
    nvalid: int = 0
    ninvalid: int = 0
    ninconclusive: int = 0
    nfaults: int = 0
    nwaiting: int = 0
    credit: float = 0.0

    @property
    def nresults(self) -> int:
        return self.nvalid + self.ninvalid + self.ninconclusive


class _MissingRows(NamedTuple):
    """Records and sums of credit that a pass needs but that do not exist yet: arguments of `create_missing`."""

    records: list[tuple[int, int, int]]
    users: list[int]
    hosts: list[int]


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Pause the garbage collector: the objects of a pass live until its end, so it would find nothing.

    Measured with ``gc.callbacks`` in twelve passes of 5,000 workunits with two results each: 65 collections in each
    took 12 to 23 ms, which is 7 to 10 % of the processor time that Python used.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@_without_garbage_collection()
def run_pass(
    app_id: int, now: dt.datetime, limit: int | None = None, prepared: PreparedAnswers | None = None
) -> PassReport:
    """Validate up to ``limit`` workunits of an app that wait for it (default: the setting VALIDATOR_BATCH).

    ``prepared``: the answers of an app's slow function; workunits without any keep waiting.

    If a batch fails, smaller ones find the workunit whose data is at fault. It is retried later, and its page says why.
    Raises OperationalError and InterfaceError if the database is at fault; then nothing has changed, and another pass
    may try.
    """
    limit = limit or settings.VALIDATOR_BATCH
    while True:
        batch = _Pass(app_id, now, prepared)
        try:
            return _run_or_create_missing(batch, limit)
        except (OperationalError, InterfaceError):
            raise
        except Exception as error:
            # Whatever the error is, one workunit must not keep all others waiting.
            log.exception("validator_pass_failed", app_id=app_id, workunits=len(batch.workunit_ids))
            if not batch.workunit_ids:
                raise
            if len(batch.workunit_ids) == 1:
                _queue_for_retry(batch.workunit_ids, f"{type(error).__name__}: {error}", now)
                return PassReport(nworkunits=1, nfaults=1)
            limit = max(1, len(batch.workunit_ids) // BATCH_DIVISOR)


def _run_or_create_missing(batch: _Pass, limit: int) -> PassReport:
    """Run the pass. If rows are missing, it is rolled back; they are created in another transaction, and it starts
    again.
    """
    for _ in range(ATTEMPTS):
        with connection.wrap_database_errors, transaction.atomic():
            missing = batch.run(limit)
            if missing is None:
                return batch.report
            transaction.set_rollback(True)
        create_missing(batch.app_id, *missing)
        batch.workunit_ids = []
    raise RuntimeError(f"records for a pass of app {batch.app_id} vanish as soon as they are created")


def _queue_for_retry(workunit_ids: Sequence[int], fault: str, now: dt.datetime) -> None:
    """Schedule a retry, and store the fault, which may quote any text."""
    text = fault.encode(errors="replace").decode().replace("\0", "")[:_LONGEST_FAULT]
    waiting = Workunit.objects.filter(pk__in=workunit_ids, need_validate=True)
    waiting.update(validate_fault=text, validate_after=now + RETRY_DELAY)


class _Pass:
    """One pass: the data read, and the engine's decisions (``credit.engine.passes``)."""

    def __init__(self, app_id: int, now: dt.datetime, prepared: PreparedAnswers | None) -> None:
        self.app_id = app_id
        self.at = now
        self.prepared = prepared
        self.now = now.timestamp()
        self.now_us = round(self.now * 1e6)
        self.report = PassReport()
        self.workunit_ids: list[int] = []
        self.facts: list[ResultFacts] = []
        self.decided = PassDecisions()
        self.log = PassLog()

    def run(self, limit: int) -> _MissingRows | None:
        """Validate up to ``limit`` workunits; return the missing rows, if any."""
        with connection.cursor() as cursor:
            # Compiling a statement takes longer than running it.
            cursor.execute("SET LOCAL jit = off")
        workunits = lock_workunits(self.app_id, limit, self.now_us)
        self.workunit_ids = workunits.id.tolist()
        self.report.nworkunits = len(workunits.id)
        if not len(workunits.id):
            return None
        results = read_results(workunits.id)
        self.begins, self.ends = places_of(workunits, results)
        self.app = App.objects.annotate(pairs_to_confirm=_pairs()).get(pk=self.app_id)
        self.app_facts = app_facts(self.app)
        self.app_facts.pairs = frozenset((pair["one"], pair["other"]) for pair in self.app.pairs_to_confirm)
        verdicts = self.check_sets(workunits, results)
        missing = self.lock(results, wrong_places(results, self.begins, verdicts))
        if missing is not None:
            return missing
        self.read_versions()
        self.write(workunits, results, verdicts)
        self.count()
        return None

    def check_sets(self, workunits: Workunits, results: Results) -> list[Verdict | None]:
        """Return the verdict on each workunit; None: it could not be compared, or a result in progress may confirm it.

        Only the waits for results in progress have been written by then.
        """
        unconfirmed = workunits.are_unconfirmed(self.begins, self.ends, self.now_us)
        held = hold_workunits(workunits.id[unconfirmed], self.now_us) if unconfirmed.any() else set()
        comparer = prepared_comparer(self.app, self.prepared)
        checker = SetChecker(self.app, workunits, results, workunits.min_quorum - unconfirmed, comparer)
        verdicts = [
            None if workunit_id in held else checker.verdict(number, begin, end)
            for number, (workunit_id, begin, end) in enumerate(
                zip(self.workunit_ids, self.begins, self.ends, strict=True)
            )
        ]
        self.faults = checker.faults
        self.outliers = sorted(checker.outliers)
        if self.outliers:
            results.is_runtime_outlier = results.is_runtime_outlier | np.isin(results.id, self.outliers)
        for place in np.flatnonzero(np.isin(results.id, list(checker.assigned))):
            results.assigned_credit[place] = checker.assigned[int(results.id[place])]
        return verdicts

    def lock(self, results: Results, wrong: list[int]) -> _MissingRows | None:
        """Lock (host, version) records, users and hosts, each in key order; return those that are missing."""
        hosts, versions, types, self.places = keys_of(results)
        newer: list[int] = []
        if wrong:
            hosts, versions, types, newer = with_newer(hosts, versions, types, read_newer(results, wrong))
        records = lock_records(self.app_id, hosts, versions, types)
        place, self.record_ids = records.place, records.id
        self.log.keep_records((hosts, versions, types), records)
        users = np.unique(results.user_id[results.user_id != 0])
        self.users = lock_users(users)
        owners = np.unique(results.host_id[results.host_id != 0])
        self.hosts, p_fpops = lock_hosts(owners)
        is_needed = hosts != 0
        if len(place) < np.count_nonzero(is_needed) or len(self.users.id) < len(users) or len(p_fpops) < len(owners):
            is_needed[place - 1] = False
            missing = np.column_stack((hosts, versions, types))[is_needed].tolist()
            return _MissingRows([tuple(key) for key in missing], users.tolist(), owners.tolist())
        self.locked = records_of(records)
        self.records: list[HostVersionFacts | None] = [None] * len(hosts)
        for number, record in zip(place.tolist(), self.locked, strict=True):
            self.records[number - 1] = record
        self.newer = [record for record in map(self.records.__getitem__, newer) if record is not None]
        benchmarks = dict(zip(self.hosts.id.tolist(), p_fpops.tolist(), strict=True))
        self.p_fpops = [
            benchmarks.get(host, np.nan) if sent_with != sent_with else sent_with
            for host, sent_with in zip(results.host_id.tolist(), results.p_fpops.tolist(), strict=True)
        ]
        return None

    def read_versions(self) -> None:
        self.versions = {v.pk: version_facts(v) for v in AppVersion.objects.filter(app=self.app_id)}
        self.log.keep_versions(self.versions.values())
        if self.app.version_average == VersionAverage.MEDIAN:
            use_medians(self.versions.values(), self.app_facts.rules)

    def write(self, workunits: Workunits, results: Results, verdicts: Sequence[Verdict | None]) -> None:
        statements = (
            sql.UPDATE_RESULTS,
            sql.UPDATE_WORKUNITS,
            sql.UPDATE_RECORDS,
            sql.UPDATE_USERS,
            sql.UPDATE_HOSTS,
        )
        decided = self.decided
        with pipelined(*statements) as send:
            self.decide(send, workunits, results, verdicts)
            count_for_newer(self.app_facts, self.newer)
            writes.send_records(send, self.record_ids, self.locked)
            granted, due = np.asarray(decided.granted_places, np.int64), np.asarray(decided.credits_due)
            sent = results.sent_at[granted] / 1e6
            for statement, accounts, owners in (
                (sql.UPDATE_USERS, self.users, results.user_id),
                (sql.UPDATE_HOSTS, self.hosts, results.host_id),
            ):
                writes.send_accounts(
                    send, statement, accounts, owners[granted], due, sent, self.now, self.app_facts.rules
                )
        by_version = writes.granted_by_version(results.version_id[granted], due)
        writes.update_versions(self.app_facts, self.versions, by_version, self.now)
        least = self.app_facts.min_avg_pfc
        self.log.write(self.app_id, self.now_us, least, workunits, results, self.p_fpops, self.places, decided)
        self.write_faults(results, verdicts)

    def decide(
        self, send: writes.Send, workunits: Workunits, results: Results, verdicts: Sequence[Verdict | None]
    ) -> None:
        """Decide the workunits chunk by chunk, and send the decisions on each and on its results."""
        cuts = [int(part * len(workunits.id)) for part in CHUNK_BOUNDS]
        for begin, end in pairwise(cuts):
            here = slice(self.begins[begin], self.ends[end - 1]) if begin < end else slice(0)
            self.facts += result_facts(results, here, self.places, self.records, self.versions, self.p_fpops)
            compared = self.compared(workunits, results, verdicts, slice(begin, end))
            decided = decide_batch(self.app_facts, compared, self.facts, self.now)
            writes.send_results(send, results.id, decided, self.now_us)
            writes.send_workunits(send, results.id, decided, self.now_us)
            self.decided.extend(decided)

    def compared(
        self, workunits: Workunits, results: Results, verdicts: Sequence[Verdict | None], here: slice
    ) -> list[ComparedWorkunit]:
        """Return those within ``here`` that could be compared, as the engine takes them."""
        compared: list[ComparedWorkunit] = []
        columns = (
            workunits.id,
            workunits.fpops_est,
            workunits.fpops_bound,
            workunits.min_quorum,
            workunits.target_nresults,
            workunits.delay_bound_secs,
            workunits.given_credit,
            workunits.confirm_until != NO_TIME,
            workunits.have_waited(self.now_us),
            workunits.is_own != 0,
            workunits.canonical_id,
            workunits.canonical_credit,
        )
        rows = zip(verdicts[here], self.begins[here], *(column[here].tolist() for column in columns), strict=True)
        for (
            verdict,
            begin,
            id_,
            est,
            bound,
            quorum,
            target,
            delay_bound_secs,
            given,
            waits,
            waited,
            is_own,
            canonical_id,
            credit,
        ) in rows:
            if verdict is None:
                continue
            states = verdict.states
            places = range(begin, begin + len(states))
            workunit = ComparedWorkunit(est, bound, quorum, target, delay_bound_secs, given, id_, places, states)
            workunit.is_waiting, workunit.has_waited, workunit.is_own = waits, waited, is_own
            if self.app_facts.pairs:
                workunit.holders = results.user_id[begin : begin + len(states)].tolist()
            if canonical_id:
                workunit.places = [place for place in places if results.validate_state[place] != _VALID]
                workunit.states = [states[place - begin] for place in workunit.places]
                workunit.earlier_credit = credit
            elif verdict.canonical is not None:
                workunit.canonical = begin + verdict.canonical
            compared.append(workunit)
        return compared

    def count(self) -> None:
        report, decided = self.report, self.decided
        states = np.bincount(decided.states, minlength=len(ValidateState)).tolist()
        report.nvalid = states[ValidateState.VALID]
        report.ninvalid = states[ValidateState.INVALID]
        report.ninconclusive = states[ValidateState.INCONCLUSIVE]
        report.ndecided = sum(credit is not None for _, _, credit in decided.workunits)
        report.nfaults, report.nwaiting = len(self.faults), len(decided.waiting_ids)
        report.credit = sum(decided.credits_due)

    def write_faults(self, results: Results, verdicts: Sequence[Verdict | None]) -> None:
        """Handle the rare cases: comparisons that failed, and results that are unfit, outliers or to be confirmed."""
        for fault, ids in _by_fault(self.faults).items():
            _queue_for_retry(ids, fault, self.at)
            log.error("validator_comparison_failed", app=self.app.name, workunits=len(ids), fault=fault)
        if self.outliers:
            Result.objects.filter(pk__in=self.outliers).update(is_runtime_outlier=True)
        if self.decided.waiting_ids:
            # The transitioner creates one more result. Another pass decides if it does not come.
            end = Coalesce("confirm_until", self.at + settings.PAIR_WAIT)
            Workunit.objects.filter(pk__in=self.decided.waiting_ids).update(
                need_validate=True,
                validate_after=end,
                validate_fault="",
                confirm_until=end,
                transition_at=self.at,
                **{name: Greatest(name, F("min_quorum") + 1) for name in _COUNTS},
                max_total_results=Greatest("max_total_results", Least(_nresults() + 1, MAX_RESULTS_PER_WORKUNIT)),
            )
        if self.decided.still_waiting_ids:
            Workunit.objects.filter(pk__in=self.decided.still_waiting_ids).update(
                validate_after=F("confirm_until"), validate_fault="", transition_at=self.at
            )
        unfit = [
            int(results.id[self.begins[number] + place])
            for number, verdict in enumerate(verdicts)
            if verdict is not None and verdict.unfit
            for place in verdict.unfit
        ]
        if unfit:
            Result.objects.filter(pk__in=unfit).update(
                outcome=Outcome.VALIDATE_ERROR, validate_state=ValidateState.INIT
            )


def _pairs() -> ArraySubquery:
    """Select the pairs of the app's volunteers whose results another one has to confirm."""
    pairs = ConfirmingPair.objects.filter(app=OuterRef("pk"), needs_another=True).order_by()
    return ArraySubquery(pairs.values(ids=JSONObject(one="one_id", other="other_id")))


def _nresults() -> Subquery:
    """Count a workunit's results, whatever their state."""
    results = Result.objects.filter(workunit=OuterRef("pk")).order_by().values("workunit")
    return Subquery(results.annotate(count=Count("pk")).values("count"))


def _by_fault(faults: dict[int, str]) -> dict[str, list[int]]:
    by_fault: dict[str, list[int]] = {}
    for id_, fault in faults.items():
        by_fault.setdefault(fault, []).append(id_)
    return by_fault
