"""What the account-manager RPC's statements do (accounting/rpc/*.sql), written independently from their documents.

Reads and writes go by the parameters as they are sent to PostgreSQL. Whether the SQL itself does this is for the tests
with a real database to say.
"""

from __future__ import annotations

import datetime as dt
import json
import random
import re
from typing import Any

from accounting.rpc import sql as rpc_sql
from portal.clients.effects import Row as SqlRow
from portal.clients.effects import Step
from tests.support.simulated.store import Row, Transaction

SIX = ("reported", "handed", "credited", "pending", "dropped", "restart")
AMOUNTS = ("a", "b", "c", "d", "e", "f")


def _array(text: str) -> list[Any]:
    """The elements of an array literal of numbers, booleans or quoted texts."""
    found: list[Any] = json.loads(f"[{text[1:-1]}]")
    return found


def _moments(text: str) -> list[dt.datetime]:
    return [dt.datetime.fromisoformat(each) for each in text[1:-1].split(",")]


def _amounts(text: str) -> list[list[int] | None]:
    return [None if each is None else _array(each) for each in _array(re.sub(r"\bNULL\b", "null", text))]


def _lists(text: str) -> list[list[list[int]]]:
    return [json.loads(each.replace("{", "[").replace("}", "]")) for each in _array(text)]


class Ledger:
    """The statements on tables key, host, ledger, project (by host and id), day, note and answer.

    ``guards`` False: the write does not look whether another request came between, which is a fault to be found.
    """

    def __init__(self, rng: random.Random, *, guards: bool = True) -> None:
        self._rng = rng
        self._guards = guards

    def handles(self, step: Step) -> bool:
        return step.statement is rpc_sql.READ or "n_host_id" in step.statement.names

    async def handle(self, transaction: Transaction, step: Step) -> list[SqlRow]:
        if step.statement is rpc_sql.READ:
            return self._read(transaction, dict(step.params))
        return await self._write(transaction, dict(step.params), waits=b"SKIP LOCKED" not in step.statement.text)

    def _read(self, transaction: Transaction, params: dict[str, Any]) -> list[SqlRow]:
        rows = []
        hashes = [each.removeprefix("\\x") for each in _array(params["key_hashes"])]
        for number, (key_hash, token) in enumerate(zip(hashes, _array(params["tokens"]), strict=True), 1):
            key = transaction.get("key", key_hash)
            named = [(id_, host) for id_, host in transaction.rows("host") if host.get("token") == token]
            if key is None or not named or named[0][1]["owner"] != key["user"]:
                continue
            rows.append(self._account(transaction, number, key, *named[0]))
        # The statement has no ORDER BY.
        self._rng.shuffle(rows)
        return rows

    def _account(self, transaction: Transaction, number: int, key: Row, id_: int, host: Row) -> SqlRow:
        ledger = transaction.get("ledger", id_)
        assert ledger is not None
        no_wishes = dict.fromkeys(
            ("suspended", "told_suspended", "no_new_work", "excluded", "update_asked", "drop_waiting"), False
        )
        ledger_columns = ("reported", "earlier", "handed", "credited", "pending", "dropped", "listed")
        projects = [
            {"project_id": project, "no_rsc": [], "listed_at": row["state"].get("at"), **no_wishes}
            | {name: row[name] for name in (*ledger_columns, "restart", "broken")}
            | {name: row["state"].get(name) for name in ("troubles", "hostid", "by_owner", "faulty", "unsummed")}
            for (owner, project), row in transaction.rows("project")
            if owner == id_
        ]
        account = {
            "n": number,
            "user_id": host["owner"],
            "user_name": f"user {host['owner']}",
            "email": f"u{host['owner']}@example.org",
            "host_id": id_,
            "p_model": "",
            "hardware_digest": host["hardware_digest"].removeprefix("\\x"),
            "venue": "",
            "platform": host["platform_name"],
            "excluded_types": [],
            "cpid": host["host_cpid"],
            "key_id": key["id"],
            "key_used_at": None if key["used_at"] is None else key["used_at"].isoformat(),
            "may_have_keys": True,
            "projects": projects or None,
            "choices": None,
            "settings": None,
        }
        account |= {name: host[name] for name in ("token", "ncpus", "p_fpops", "coprocs")}
        of_ledger = ("last_at_us", "client_now", "level", "contacts", "answer_digest", "answers_logged", "same_answers")
        account |= {name: ledger[name] for name in of_ledger}
        return (json.dumps(account),)

    async def _write(self, transaction: Transaction, params: dict[str, Any], *, waits: bool) -> list[SqlRow]:
        columns = ("host_id", "contacts", "client_now", "level", "contact", "answer_digest")
        counts = ("answers_logged", "same_answers")
        several = [
            dict(zip((*columns, *counts, "now"), values, strict=True))
            for values in zip(
                *(_array(params[f"n_{name}"]) for name in (*columns, *counts)),
                _moments(params["n_now"]),
                strict=True,
            )
        ]
        written: dict[int, Row] = {}
        for new in several:
            id_ = new["host_id"]
            if not await transaction.lock("ledger", id_, waits=waits):
                continue
            if not await transaction.lock("host", id_, waits=waits):
                continue
            ledger, host = transaction.get("ledger", id_), transaction.get("host", id_)
            assert ledger is not None and host is not None
            if self._guards and ledger["contacts"] != new["contacts"]:
                continue
            written[id_] = new
            us = (new["now"] - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)
            transaction.update(
                "ledger",
                id_,
                last_at_us=us,
                contacts=ledger["contacts"] + 1,
                level=_array(new["level"]),
                **{name: new[name] for name in ("client_now", "answer_digest", "answers_logged", "same_answers")},
            )
        for load in json.loads(params.get("described", "[]")):
            if load["host_id"] in written:
                transaction.update("host", load["host_id"], **load["description"])
        self._write_projects(transaction, params, written)
        self._write_days(transaction, params, written)
        for load in json.loads(params.get("answers", "[]")):
            if load["host_id"] in written:
                transaction.put("answer", (load["host_id"], load["slot"]), load)
        return [(id_,) for id_ in written]

    def _write_projects(self, transaction: Transaction, params: dict[str, Any], written: dict[int, Row]) -> None:
        six = [_amounts(params[f"p_{name}"]) for name in SIX]
        rest = (
            _lists(params["p_earlier"]),
            _array(params["p_listed"]),
            _array(params["p_state"]),
            [each[1:-1].split(",") if each != "{}" else [] for each in _array(params["p_broken"])],
        )
        hosts, ids = _array(params["p_host_id"]), _array(params["p_id"])
        for host_id, id_, earlier, listed, state, broken, *amounts in zip(hosts, ids, *rest, *six, strict=True):
            if host_id in written:
                before = transaction.get("project", (host_id, id_)) or {"state": {}}
                after = json.loads(state) if listed and state else before["state"]
                row = dict(zip(SIX, amounts, strict=True))
                transaction.put(
                    "project",
                    (host_id, id_),
                    {"earlier": earlier, "listed": listed, "state": after, "broken": broken, **row},
                )

    def _write_days(self, transaction: Transaction, params: dict[str, Any], written: dict[int, Row]) -> None:
        names = ("host_id", "user_id", "id", *AMOUNTS)
        days = params["d_day"][1:-1].split(",") if params["d_day"] != "{}" else []
        for day, host_id, user_id, id_, *amounts in zip(
            days, *(_array(params[f"d_{name}"]) for name in names), strict=True
        ):
            if host_id in written:
                key = (user_id, day, id_, host_id)
                before = transaction.get("day", key) or {"amounts": [0] * 6}
                total = [old + new for old, new in zip(before["amounts"], amounts, strict=True)]
                transaction.put("day", key, {"amounts": total})
