"""The transitioner: examines workunits whose results changed or are due, and applies what
`scheduler.engine.transitions` decides.

One pass is one transaction with a fixed number of statements, whatever its size; one more if workunits are unbound from
their class or version (`scheduler.engine.lanes`). Locks are taken in the order of the project server: workunits by id,
results, (host, version) records. Workunits and results are taken with SKIP LOCKED, so it never waits for a report or a
validator: rows locked by others are left to the next pass. Any number of transitioners may run at once. A workunit that
makes a pass fail goes into the retry queue (`scheduler.lifecycle.retry_queue`).
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from typing import Final

import structlog
from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

from credit.engine.rules import Rules
from scheduler.engine.transitions import Decision, ResultState, WorkunitState, decide
from scheduler.lifecycle import retry_queue, sql
from scheduler.lifecycle.retry_queue import StepBatch, run_batches
from scheduler.models import Step
from scheduler.submission.create_work import create_results

log = structlog.get_logger(__name__)
BATCH: Final = 1000


@dataclass(frozen=True, slots=True)
class Pass:
    """The counts of one pass: workunits examined, results timed out, results created."""

    nworkunits: int = 0
    ntimed_out: int = 0
    ncreated: int = 0


def run(now: dt.datetime) -> Pass:
    """Run passes until nothing is due; each commits separately."""
    passes: list[Pass] = []

    def run_one(batch: StepBatch) -> int:
        done = _run(batch, now)
        passes.append(done)
        return done.nworkunits

    run_batches(Step.TRANSITION, now, BATCH, run_one)
    total = Pass(*(sum(numbers) for numbers in zip(*(astuple(done) for done in passes), strict=True)))
    if total.nworkunits:
        log.info("transitioned", workunits=total.nworkunits, timed_out=total.ntimed_out, created=total.ncreated)
    return total


def run_pass(now: dt.datetime, limit: int = BATCH) -> Pass:
    """Run one pass over up to ``limit`` workunits that are due at ``now``, in one transaction."""
    with transaction.atomic():
        return _run(StepBatch(limit), now)


def _run(batch: StepBatch, now: dt.datetime) -> Pass:
    with connection.cursor() as cursor:
        workunits = _lock_workunits(cursor, now, batch.limit)
        batch.ids = list(workunits)
        results = _lock_results(cursor, batch.ids)
        decisions = {id_: decide(workunits[id_], results[id_], now) for id_ in workunits if id_ in results}
        if not decisions:
            return Pass()
        _change_results(cursor, decisions.values())
        timed_out = sorted(id_ for decision in decisions.values() for id_ in decision.timed_out)
        _penalise_hosts(cursor, timed_out, now)
        _free(cursor, decisions)
        new = [(id_, len(results[id_]), decision.nnew) for id_, decision in decisions.items() if decision.nnew]
        create_results(cursor, new, now)
        _change_workunits(cursor, decisions)
        retry_queue.remove(cursor, Step.TRANSITION, list(decisions))
        return Pass(len(decisions), len(timed_out), sum(nnew for _, _, nnew in new))


def _lock_workunits(cursor: CursorWrapper, now: dt.datetime, limit: int) -> dict[int, WorkunitState]:
    cursor.execute(sql.LOCK_DUE_WORKUNITS, {"now": now, "limit": limit, "step": Step.TRANSITION.value})
    return {row[0]: WorkunitState(*row[1:]) for row in cursor.fetchall()}


def _lock_results(cursor: CursorWrapper, ids: list[int]) -> dict[int, list[ResultState]]:
    """Lock and return the results of workunits, if all of a workunit's results could be locked."""
    cursor.execute(sql.COUNT_RESULTS, {"ids": ids})
    counts: dict[int, int] = dict(cursor.fetchall())
    cursor.execute(sql.LOCK_RESULTS, {"ids": ids})
    states: defaultdict[int, list[ResultState]] = defaultdict(list)
    for workunit_id, *state in cursor.fetchall():
        states[workunit_id].append(ResultState(*state))
    return {id_: states[id_] for id_ in ids if len(states[id_]) == counts.get(id_, 0)}


def _change_results(cursor: CursorWrapper, decisions: Iterable[Decision]) -> None:
    changes = sorted(change for decision in decisions for change in decision.changes.items())
    states: Sequence[tuple[int, int, int]] = [state for _, state in changes]
    cursor.execute(
        sql.CHANGE_RESULTS,
        {
            "ids": [id_ for id_, _ in changes],
            "server_states": [int(state[0]) for state in states],
            "outcomes": [int(state[1]) for state in states],
            "validate_states": [int(state[2]) for state in states],
        },
    )


def _penalise_hosts(cursor: CursorWrapper, ids: list[int], now: dt.datetime) -> None:
    rules = Rules.published()
    cursor.execute(
        sql.PENALISE_HOSTS,
        {"ids": ids, "now": now, "step": rules.error_rate_step, "weight": rules.failing_weight},
    )


def _free(cursor: CursorWrapper, decisions: dict[int, Decision]) -> None:
    """Unbind workunits without any result that counts, before they get new results."""
    lanes = {id_: decision.freed_lane for id_, decision in decisions.items() if decision.freed_lane is not None}
    if lanes:
        cursor.execute(sql.FREE_WORKUNITS, {"ids": list(lanes), "lanes": list(lanes.values())})


def _change_workunits(cursor: CursorWrapper, decisions: dict[int, Decision]) -> None:
    ids = list(decisions)
    cursor.execute(
        sql.CHANGE_WORKUNITS,
        {
            "ids": ids,
            "need_validate": [decisions[id_].need_validate for id_ in ids],
            "error_mask": [int(decisions[id_].error_mask) for id_ in ids],
            "assimilate_state": [int(decisions[id_].assimilate_state) for id_ in ids],
            "file_delete_state": [int(decisions[id_].file_delete_state) for id_ in ids],
        },
    )
