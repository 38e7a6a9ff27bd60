"""Picks jobs from the queues of unsent results, and says why none suits.

Jobs are picked with SKIP LOCKED, result and workunit together, so schedulers never wait for one another here. Jobs that
are picked but not sent are free again at the end of the transaction.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from portal.clients.database.json_rows import decode
from portal.clients.effects import Query, Row, Step, fetch
from scheduler.engine.facts import Job, JobQuery
from scheduler.rpc import sql as rpc_sql
from scheduler.rpc.rows import ELSEWHERE, PICKED, WAITING, WaitingCounts


def _as_json(queries: Sequence[JobQuery]) -> str:
    return msgspec.json.encode(queries).decode()


def _as_text(value: float | Sequence[int]) -> str:
    return f"{{{','.join(map(str, value))}}}" if isinstance(value, Sequence) else str(value)


async def pick(user_id: int, queries: Sequence[JobQuery]) -> tuple[list[Job], dict[int, tuple[int, int]]]:
    """Lock jobs at the heads of the apps' queues; return them in the queue's order, and by app where its queue now
    begins.
    """
    if len(queries) == 1:
        # As texts: for numbers the driver would prepare another statement for each size.
        statement = rpc_sql.pick(of_one_app=True, has_lanes=queries[0].has_lanes)
        query = {name: _as_text(getattr(queries[0], name)) for name in statement.names if name != "user_id"}
        step = Step(statement, query | {"user_id": str(user_id)})
    else:
        statement = rpc_sql.pick(of_one_app=False, has_lanes=any(query.has_lanes for query in queries))
        step = Step(statement, {"queries": _as_json(queries), "user_id": str(user_id)})
    [(picked,)] = await fetch(step)
    jobs: list[Job] = []
    heads: dict[int, tuple[int, int]] = {}
    for row in PICKED.decode(picked or "null") or ():
        jobs.append(row.job)
        if row.rank is not None and row.place is not None:
            heads[row.job.app_id] = row.rank, row.place
    return jobs, heads


async def pick_elsewhere(
    user_id: int, short: Sequence[JobQuery], queries: Sequence[JobQuery], locked: Sequence[Job], now: dt.datetime
) -> tuple[list[Job], WaitingCounts]:
    """Lock jobs from elsewhere in queues whose heads have too few, and count the waiting jobs for all ``queries``.

    ``locked``: jobs that the request has already.
    """
    values = {
        "user_id": str(user_id),
        "short": _as_json(short),
        "apps": _as_json(queries),
        "locked": f"{{{','.join(str(job.id) for job in locked)}}}",
        "now": now.isoformat(),
    }
    statement = rpc_sql.pick_elsewhere(has_lanes=any(query.has_lanes for query in short))
    [row] = decode(ELSEWHERE, await fetch(Step(statement, values)))
    return row.jobs or [], row.waiting


@dataclass(slots=True, eq=False)
class DiagnosisQuery(Query[WaitingCounts]):
    """Finds out why nothing suits. It examines so many jobs that other requests must not wait for it."""

    queries: Sequence[JobQuery]
    is_write = False

    @property
    def kind(self) -> str:
        return "diagnose"

    @property
    def is_slow(self) -> bool:
        return True

    @staticmethod
    def steps(several: Sequence[DiagnosisQuery], *, alone: bool) -> list[Step]:
        (diagnosis,) = several
        return [Step(rpc_sql.DIAGNOSE, {"apps": _as_json(diagnosis.queries)})]

    @staticmethod
    def results(several: Sequence[DiagnosisQuery], rows: Sequence[Row]) -> list[WaitingCounts]:
        return decode(WAITING, rows)
