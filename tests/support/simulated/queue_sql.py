"""What the scheduler's statements do (scheduler/rpc/sql/*.sql, scheduler/ready_jobs/lease.sql), written independently.

As in `tests.support.simulated.ledger_sql`, by the parameters as they are sent.
"""

from __future__ import annotations

import datetime as dt
import json
import random
from typing import Any

from credit.engine.states import Outcome, ServerState, ValidateState
from portal.clients.effects import Row as SqlRow
from portal.clients.effects import Step
from scheduler.ready_jobs.sql import BLOCK, LEASE_JOBS
from scheduler.rpc import sql as rpc_sql
from scheduler.rpc.rows import ReadRow
from tests.support.simulated.store import Row, Transaction

LATE = (Outcome.NO_REPLY, Outcome.CLIENT_DETACHED)
DETAILS = ("fpops_est", "fpops_bound", "memory_bytes", "disk_bytes", "delay_bound_secs", "min_quorum")


def _secs(moment: str | None) -> float | None:
    return None if moment is None else dt.datetime.fromisoformat(moment).timestamp()


def _job(id_: int, row: Row, work: Row) -> Row:
    details = {"workunit_name": work["name"], "command_line": "", "input_files": [], "output_files": []}
    facts = {"id": id_, "workunit_id": row["workunit_id"], "app_id": work["app_id"], "name": row["name"]}
    return facts | {name: work[name] for name in DETAILS} | {"details": details}


class Queue:
    """The statements on tables key, host, record, result, workunit, version (of a host) and lease.

    ``guards`` False: a computer's row is not compared with what was read, and jobs are taken whoever has them.
    """

    def __init__(self, rng: random.Random, now: Any, *, guards: bool = True) -> None:
        self._rng = rng
        self._now = now
        self._guards = guards

    async def handle(self, transaction: Transaction, step: Step) -> list[SqlRow]:
        statement, params = step.statement, dict(step.params)
        if statement in (rpc_sql.read(), rpc_sql.read("reported")):
            return self._read(transaction, json.loads(params["askers"]))
        if statement is rpc_sql.LOCK:
            await transaction.lock("host", int(params["host_id"]))
            return [(int(params["host_id"]),)]
        if statement is rpc_sql.REPORT:
            return await self._report(transaction, json.loads(params["rows"]), int(params["host_id"]))
        if statement is rpc_sql.RESERVE:
            return await self._reserve(transaction, json.loads(params["requests"]))
        if statement is rpc_sql.RESERVE_JOBS:
            wanted = sorted(int(id_) for id_ in params["jobs"][1:-1].split(","))
            return [(id_,) for id_ in wanted if await self._take(transaction, id_)]
        if statement is LEASE_JOBS:
            return self._lease(transaction, params)
        if statement is rpc_sql.pick_elsewhere(has_lanes=False):
            found = {int(each) for each in params["locked"][1:-1].split(",") if each}
            picked = [
                job
                for query in json.loads(params["short"])
                for job in await self._pick(transaction, query, int(params["user_id"]), found)
            ]
            waiting = {"njobs": len(picked), "memory_nbytes": None, "disk_nbytes": None, "deadline": 0}
            return [(json.dumps({"jobs": picked, "waiting": waiting}),)]
        if statement is rpc_sql.DIAGNOSE:
            return [(json.dumps({"njobs": 0, "memory_nbytes": None, "disk_nbytes": None, "deadline": 0}),)]
        if statement is rpc_sql.pick(of_one_app=True, has_lanes=False):
            numbers = {name: int(params[name]) for name in ("app_id", "most", "begin", "rank")}
            query = numbers | {"one_per_user": params["one_per_user"] == "True"}
            return await self._pick_all(transaction, [query], int(params["user_id"]))
        if statement is rpc_sql.pick(of_one_app=False, has_lanes=False):
            return await self._pick_all(transaction, json.loads(params["queries"]), int(params["user_id"]))
        return self._write(transaction, params)

    def _records(self, transaction: Transaction, host_id: int) -> list[Row]:
        names = ("host_scale_at", "error_rate", "consecutive_valid", "max_jobs_per_day", "failing_share")
        return [
            dict(zip(("app_id", "version_id", "processor_type"), row["key"], strict=True))
            | {"id": id_, "et_n": 0, "et_avg": None, "turnaround_n": 0, "turnaround_avg": None}
            | {"scale_probation": row["probation"]}
            | {name: row[name] for name in names}
            for id_, row in transaction.rows("version")
            if row["host_id"] == host_id
        ]

    def _read(self, transaction: Transaction, askers: list[Row]) -> list[SqlRow]:
        rows = []
        for asker in askers:
            key = transaction.get("key", asker["key_hash"].removeprefix("\\x"))
            if key is None:
                continue
            id_, user = asker["host_id"], key["user"]
            host = transaction.get("host", id_)
            if host is not None and host["owner"] != user:
                host = None
            record = transaction.get("record", id_) or {}
            results = [
                self._result(transaction, number, result, asker)
                for number, result in transaction.rows("result")
                if (result["host_id"] == id_ and result["server_state"] == ServerState.IN_PROGRESS)
                or result["name"] in asker["names"]
            ]
            account = {
                "n": asker["n"], "user_id": user, "user_name": f"user {user}", "email": f"u{user}@example.org",
                "cross_project_id": "c" * 32, "user_created_at": 1.0, "key_id": key["id"], "key_created_at": 1.0,
                "key_used_at": self._now().timestamp(), "records": self._records(transaction, id_), "results": results,
                "hardware_digest": record.get("hardware_digest", "").removeprefix("\\x"),
                "jobs_day": record.get("jobs_day"), "jobs_of_day": record.get("jobs_of_day"),
                "cpids": record.get("cpids"), "named_jobs_until": _secs(record.get("named_jobs_until")),
                "work_asked_at": _secs(record.get("work_asked_at")),
            }  # fmt: skip
            account |= {name: record.get(name) for name in ("rpc_seqno", "repeated_seqno", "repeated_times")}
            if host is not None:
                account |= {"host_id": id_, "host_created_at": 1.0, "venue": "", "host_version": str(host["version"])}
            rows.append((json.dumps(dict.fromkeys(ReadRow.__struct_fields__) | account),))
        self._rng.shuffle(rows)
        return rows

    def _result(self, transaction: Transaction, id_: int, row: Row, asker: Row) -> Row:
        work = transaction.get("workunit", row["workunit_id"])
        assert work is not None
        names = ("name", "host_id", "workunit_id", "processor_type", "server_state", "outcome")
        return {name: row[name] for name in (*names, "projected_flops", "peak_flops")} | {
            "id": id_,
            "app_id": work["app_id"],
            "version_id": row["app_version_id"],
            "sent_at": _secs(row["sent_at"]),
            "deadline_at": _secs(row["deadline_at"]),
            "error_mask": 0,
            "is_decided": False,
            "delay_bound_secs": work["delay_bound_secs"],
            "job": _job(id_, row, work) if row["name"] not in asker["names"] else None,
            "output_files": [],
            "uploads": [],
        }

    async def _report(self, transaction: Transaction, rows: list[Row], host_id: int) -> list[SqlRow]:
        for workunit in sorted({row["workunit_id"] for row in rows}):
            await transaction.lock("workunit", workunit)
        done = []
        for row in rows:
            await transaction.lock("result", row["id"])
            known = transaction.get("result", row["id"])
            assert known is not None
            is_open = known["server_state"] == ServerState.IN_PROGRESS
            is_late = known["outcome"] in LATE and row["outcome"] != Outcome.CLIENT_DETACHED
            if known["host_id"] == host_id and (is_open or (known["server_state"] == ServerState.OVER and is_late)):
                transaction.update(
                    "result",
                    row["id"],
                    server_state=ServerState.OVER,
                    outcome=row["outcome"],
                    validate_state=ValidateState.INIT,
                    ntaken=known["ntaken"] + 1,
                )
                done.append(row["id"])
        for id_, version in transaction.rows("version"):
            if done and version["host_id"] == host_id:
                await transaction.lock("version", id_)
        records = self._records(transaction, host_id) if done else None
        return [(json.dumps({"counted": done, "records": records}),)]

    async def _take(self, transaction: Transaction, id_: int) -> bool:
        """Lock a waiting job and its workunit, if nobody has them locked."""
        row = transaction.get("result", id_)
        if row is None or not await transaction.lock("result", id_, waits=False):
            return not self._guards
        if not await transaction.lock("workunit", row["workunit_id"], waits=False):
            return not self._guards
        now = transaction.get("result", id_)
        return not self._guards or (now is not None and now["server_state"] == ServerState.UNSENT)

    async def _reserve(self, transaction: Transaction, requests: list[Row]) -> list[SqlRow]:
        computers = []
        for request in requests:
            host = transaction.get("host", request["host_id"])
            if host is None or (self._guards and str(host["version"]) != request["version"]):
                continue
            if await transaction.lock("host", request["host_id"], waits=False):
                computers.append(request)
        wanted = sorted({id_ for computer in computers for id_ in computer["jobs"]})
        taken = {id_ for id_ in wanted if await self._take(transaction, id_)}
        return [(computer["host_id"],) for computer in computers if taken.issuperset(computer["jobs"])]

    async def _pick(self, transaction: Transaction, query: Row, user_id: int, found: set[int]) -> list[Any]:
        jobs: list[Any] = []
        for id_, row in list(transaction.rows("result")):
            if len(jobs) == query["most"]:
                break
            work = transaction.get("workunit", row["workunit_id"])
            assert work is not None
            if row["server_state"] != ServerState.UNSENT or work["app_id"] != query["app_id"]:
                continue
            if id_ in found or id_ < query["begin"]:
                continue
            copies = [(n, each) for n, each in transaction.rows("result") if each["workunit_id"] == row["workunit_id"]]
            if any(n < id_ and each["server_state"] == ServerState.UNSENT for n, each in copies):
                continue
            if query["one_per_user"] and any(each["user_id"] == user_id for _, each in copies):
                continue
            if await self._take(transaction, id_):
                jobs.append(_job(id_, row, work))
        return jobs

    async def _pick_all(self, transaction: Transaction, queries: list[Row], user_id: int) -> list[SqlRow]:
        picked: list[Any] = []
        for query in queries:
            jobs = await self._pick(transaction, query, user_id, set())
            picked += [{"job": job, "rank": 0, "place": jobs[0]["id"]} for job in jobs]
        return [(json.dumps(picked),)]

    def _lease(self, transaction: Transaction, params: dict[str, Any]) -> list[SqlRow]:
        app_id, holder, now = int(params["app_id"]), int(params["holder"]), self._now().timestamp()
        works = dict(transaction.rows("workunit"))
        head = [
            (id_, row)
            for id_, row in transaction.rows("result")
            if row["server_state"] == ServerState.UNSENT
            and works[row["workunit_id"]]["app_id"] == app_id
            and (0, id_) >= (int(params["rank"]), int(params["begin"]))
        ][: int(params["looked_at"])]
        free = []
        for id_, row in head:
            lease = transaction.get("lease", (app_id, id_ // BLOCK))
            if lease is None or lease["holder"] == holder or not now <= lease["until"] <= now + 60:
                free.append((id_, row))
        free = free[: int(params["most"])]
        copies: dict[int, list[Any]] = {}
        for id_, row in free:
            until = now + float(params["lease_secs"])
            transaction.put("lease", (app_id, id_ // BLOCK), {"holder": holder, "until": until})
            copies.setdefault(row["workunit_id"], []).append({"id": id_, "rank": 0, "place": id_, "name": row["name"]})
        workunits = [
            {name: works[id_][name] for name in (*DETAILS, "name")}
            | {"id": id_, "copies": its, "command_line": "", "input_files": [], "output_files": []}
            | {"holders": [row["user_id"] or 0 for _, row in transaction.rows("result") if row["workunit_id"] == id_]}
            for id_, its in copies.items()
        ]
        last = free if len(free) == int(params["most"]) else head if len(head) == int(params["looked_at"]) else []
        leased = {
            "last": [0, last[-1][0]] if last else None,
            "nahead": min(len(head), int(params["near_end"])),
        }
        return [(json.dumps(leased | {"workunits": workunits or None}),)]

    def _write(self, transaction: Transaction, params: dict[str, Any]) -> list[SqlRow]:
        parts = {part: json.loads(text) for part, text in params.items()}
        sent: dict[int, dict[int, str]] = {}
        for row in parts.get("sent", ()):
            known = transaction.get("result", row["id"])
            assert known is not None
            copies = [each for _, each in transaction.rows("result") if each["workunit_id"] == known["workunit_id"]]
            others = {copy["user_id"] for copy in copies}
            if self._guards and known["server_state"] != ServerState.UNSENT:
                continue
            if self._guards and row["one_per_user"] and row["user_id"] in others:
                continue
            columns = ("host_id", "user_id", "app_version_id", "processor_type", "peak_flops", "projected_flops")
            said = {name: row[name] for name in (*columns, "sent_at", "deadline_at")}
            transaction.update(
                "result", row["id"], server_state=ServerState.IN_PROGRESS, nsent=known["nsent"] + 1, **said
            )
            sent.setdefault(row["host_id"], {})[row["id"]] = known["name"]
        for part in ("added", "judged", "begun"):
            for row in parts.get(part, ()):
                self._write_version(transaction, row)
        for row in parts["record"]:
            transaction.put("record", row["host_id"], row)
        written: list[SqlRow] = []
        for row in parts["host"]:
            id_ = row["host_id"]
            transaction.store.serial += 1
            transaction.update("host", id_, version=transaction.store.serial)
            written.append((json.dumps({"host_id": id_, "sent": sent.get(id_), "has_dropped_trickles": False}),))
        self._rng.shuffle(written)
        return written

    def _write_version(self, transaction: Transaction, row: Row) -> None:
        key = [row.get("app_id"), row.get("app_version_id") or 0, row.get("processor_type")]
        id_ = row.get("id") or next(
            (n for n, each in transaction.rows("version") if each["host_id"] == row["host_id"] and each["key"] == key),
            None,
        )
        if id_ is None:
            transaction.store.serial += 1
            id_ = transaction.store.serial
        before = transaction.get("version", id_) or {"key": key}
        transaction.put(
            "version",
            id_,
            {
                "key": before["key"],
                "host_id": row["host_id"],
                "probation": row.get("scale_probation", True),
                "host_scale_at": _secs(row["host_scale_at"]),
                "error_rate": row.get("error_rate", 0.1),
                "consecutive_valid": row.get("consecutive_valid", 0),
                "max_jobs_per_day": row["max_jobs_per_day"],
                "failing_share": row.get("failing_share", 0.0),
            },
        )
