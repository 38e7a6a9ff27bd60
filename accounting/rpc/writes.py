"""The write of the account-manager RPC: a settlement, batched with those of other requests.

accounting/rpc/write.sql says what it locks and in which order.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final, NamedTuple

import orjson

from accounting.engine.amounts import NO_WORK, Totals
from accounting.engine.states import LedgerChanges, ProjectState
from accounting.ledger.partitions import month_of
from accounting.rpc import sql as rpc_sql
from accounting.rpc.contact_log import LastAnswer
from accounting.rpc.description import Description
from accounting.rpc.store import Account, from_us, texts
from portal.clients.effects import RUN_ALONE, Query, Row, Step

_SIX: Final = '"{%s,%s,%s,%s,%s,%s}"'
_SIX_EACH: Final = _SIX.strip('"')
_NO_WORK: Final = _SIX % NO_WORK


def _amounts(values: Iterable[Totals | None]) -> str:
    """Return an array literal whose elements are array literals of six numbers, or NULL."""
    return "{" + ",".join(["NULL" if v is None else _NO_WORK if v == NO_WORK else _SIX % v for v in values]) + "}"


def _lists(values: Iterable[Sequence[Totals]]) -> str:
    """Return an array literal whose elements are array literals of arrays of six numbers."""
    return "{" + ",".join([f'"{{{",".join([_SIX_EACH % totals for totals in sixes])}}}"' for sixes in values]) + "}"


def _array(values: Sequence[float | None]) -> str:
    """Return an array literal of 64-bit numbers, or of booleans; cheaper than a list parameter."""
    return f"{{{orjson.dumps(values).decode()[1:-1]}}}"


_project_id: Final = attrgetter("project_id")


class StoredTaskList(NamedTuple):
    """A list of tasks as `accounting.models.TaskList` has it; ``tasks`` as JSON."""

    tasks: str
    left_out: int


@dataclass(frozen=True, slots=True, eq=False)
class Write(Query["bool | None"]):
    """Store a settlement. True; None, and nothing is written, if another request of the host came between.

    ``rows``: the host's project rows to write; ``states``: the client's report of each listed project, for the pages.
    ``answer``: the answer, as summarised by `contact_log.summarise`; a row only if it has changed. ``described``: the
    computer's new description, if it has one. ``tasks``: the list of its tasks, if it sent one that is stored. The
    reply must carry the wishes as they are in ``account``: they are stored as sent.
    """

    account: Account
    settlement: LedgerChanges
    rows: Sequence[ProjectState]
    states: Mapping[int, dict[str, Any]]
    now: dt.datetime
    contact: dict[str, object]
    answer: str
    described: Description | None = None
    tasks: StoredTaskList | None = None

    is_write = True

    @property
    def kind(self) -> Hashable:
        return Write, self.now.year, self.now.month

    @property
    def owner(self) -> Hashable:
        return self.account.host_id

    @staticmethod
    def steps(several: Sequence[Write], *, alone: bool) -> Sequence[Step]:
        ordered = sorted(several, key=lambda contact: contact.account.host_id)
        notes = [note for contact in ordered if contact.settlement.notes for note in contact.note_rows()]
        answers: list[dict[str, Any]] = []
        params = _ledger_params(ordered, answers) | _project_params(ordered) | _day_params(ordered)
        described = [contact for contact in ordered if contact.described is not None]
        if notes:
            # Not by orjson: amounts may have more digits than 64 bits hold.
            params["notes"] = json.dumps(notes)
        if answers:
            params["answers"] = orjson.dumps(answers).decode()
        if listing := [contact for contact in ordered if contact.tasks is not None]:
            params |= _task_params(listing)
        if described:
            params["described_ids"] = _array([contact.account.host_id for contact in described])
            params["described"] = orjson.dumps([contact.description_row() for contact in described]).decode()
        statement = rpc_sql.write(
            month_of(ordered[0].now.date()),
            waits=alone,
            notes=bool(notes),
            answers=bool(answers),
            described=bool(described),
            tasks=bool(listing),
        )
        return [Step(statement, params)]

    @staticmethod
    def results(several: Sequence[Write], rows: Sequence[Row]) -> Sequence[Any]:
        written = {host_id for (host_id,) in rows}
        # Another transaction may hold the rows of the missing ones, or may have written them.
        return [contact.account.host_id in written or RUN_ALONE for contact in several]

    def suspensions(self) -> set[int]:
        """Return suspended projects that the client was told of; each suspension's end has to be sent.

        A client that still has it suspended may not have got the reply that ended it.
        """
        return {
            id_
            for id_, wishes in self.account.wishes.items()
            if wishes.suspended or (wishes.told_suspended and self.states.get(id_, {}).get("suspended"))
        }

    def updates(self) -> set[int]:
        return {id_ for id_, wishes in self.account.wishes.items() if wishes.update_asked}

    def description_row(self) -> dict[str, Any]:
        assert self.described is not None  # only used for these kinds
        return {"host_id": self.account.host_id, "description": self.described.columns}

    def answer_row(self, answered: LastAnswer) -> dict[str, Any]:
        last_at_us = self.account.state.last_at_us
        return {
            "host_id": self.account.host_id,
            "slot": answered.slot,
            "content": orjson.Fragment(self.answer),
            "before_times": self.account.answered.same,
            "before_last_at": None if last_at_us is None else from_us(last_at_us).isoformat(),
        }

    def note_rows(self) -> Iterable[dict[str, Any]]:
        """Return one row per kind, project and detail, as the same key may not come twice in one statement."""
        rows: dict[tuple[object, ...], dict[str, Any]] = {}
        for note in self.settlement.notes:
            detail = (note.detail or note.amount_kind or "")[:300]
            row = rows.setdefault(
                (note.kind, note.project_id, detail),
                {
                    "host_id": self.account.host_id,
                    "id": note.project_id or 0,
                    "kind": str(note.kind),
                    "detail": detail,
                    "amount": 0,
                    "count": 0,
                },
            )
            row["amount"] += note.amount
            row["count"] += 1
        return rows.values()


def _ledger_params(several: Sequence[Write], answers: list[dict[str, Any]]) -> dict[str, str]:
    """Return the parameters for the ledgers; appends to ``answers`` each answer that differs from the last one."""
    answered = []
    for contact in several:
        after, is_new = contact.account.answered.then(contact.answer)
        answered.append(after)
        if is_new:
            answers.append(contact.answer_row(after))
    return {
        "n_host_id": _array([contact.account.host_id for contact in several]),
        "n_contacts": _array([contact.account.contacts for contact in several]),
        "n_now": f"{{{','.join([contact.now.isoformat() for contact in several])}}}",
        "n_client_now": _array([contact.settlement.host.client_now for contact in several]),
        "n_level": texts([_array(tuple(contact.settlement.host.level)) for contact in several]),
        "n_contact": texts([orjson.dumps(contact.contact).decode() for contact in several]),
        "n_answer_digest": texts([after.digest for after in answered]),
        "n_answers_logged": _array([after.logged for after in answered]),
        "n_same_answers": _array([after.same for after in answered]),
    }


def _task_params(several: Sequence[Write]) -> dict[str, str]:
    listed = [(contact.account.host_id, contact.tasks) for contact in several if contact.tasks is not None]
    return {
        "t_host_id": _array([host_id for host_id, _ in listed]),
        "t_tasks": texts([contact.tasks for _, contact in listed]),
        "t_left_out": _array([contact.left_out for _, contact in listed]),
    }


def _project_params(several: Sequence[Write]) -> dict[str, str]:
    hosts: list[int] = []
    rows: list[ProjectState] = []
    states: list[str | None] = []
    told_suspended: list[bool] = []
    told_updates: list[bool] = []
    for contact in several:
        suspensions, updates = contact.suspensions(), contact.updates()
        for row in sorted(contact.rows, key=_project_id):
            id_ = row.project_id
            hosts.append(contact.account.host_id)
            rows.append(row)
            states.append(orjson.dumps(contact.states[id_]).decode() if id_ in contact.states else None)
            told_suspended.append(id_ in suspensions)
            told_updates.append(id_ in updates)
    return {
        "p_host_id": _array(hosts),
        "p_id": _array([row.project_id for row in rows]),
        "p_reported": _amounts([row.reported for row in rows]),
        "p_earlier": _lists([row.earlier for row in rows]),
        "p_restart": _amounts([row.restart for row in rows]),
        "p_broken": texts([f"{{{','.join(sorted(row.broken))}}}" for row in rows]),
        "p_handed": _amounts([row.handed for row in rows]),
        "p_credited": _amounts([row.credited for row in rows]),
        "p_pending": _amounts([row.pending for row in rows]),
        "p_dropped": _amounts([row.dropped for row in rows]),
        "p_listed": _array([row.listed for row in rows]),
        "p_state": texts(states),
        "p_told_suspended": _array(told_suspended),
        "p_told_update": _array(told_updates),
    }


def _day_params(several: Sequence[Write]) -> dict[str, str]:
    hosts: list[int] = []
    users: list[int] = []
    days: list[str] = []
    ids: list[int] = []
    flags: list[int] = []
    amounts: list[Totals] = []
    for contact in several:
        credits_, flags_of = contact.settlement.credits, contact.settlement.flags
        for id_ in sorted(credits_.keys() | flags_of.keys()):
            hosts.append(contact.account.host_id)
            users.append(contact.account.user_id)
            days.append(contact.now.date().isoformat())
            ids.append(id_)
            flags.append(flags_of.get(id_, 0))
            amounts.append(credits_.get(id_, NO_WORK))
    columns = list(zip(*amounts, strict=True)) if amounts else [()] * 6
    params = {f"d_{letter}": _array(column) for letter, column in zip("abcdef", columns, strict=True)}
    return params | {
        "d_host_id": _array(hosts),
        "d_user_id": _array(users),
        "d_day": f"{{{','.join(days)}}}",
        "d_id": _array(ids),
        "d_flags": _array(flags),
    }
