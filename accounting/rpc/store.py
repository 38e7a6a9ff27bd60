"""The queries of the account-manager RPC: read an account, write a settlement; batched with those of other requests.

accounting/rpc/sql.py has the statements, and says what they lock and in which order.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Final, NamedTuple

import orjson
from django.conf import settings

from accounting.engine.amounts import NO_WORK, Totals
from accounting.engine.choice.facts import Wish, device_types
from accounting.engine.choice.troubles import StoredTroubles
from accounting.engine.host_wishes import HostWishes
from accounting.engine.machine import Allowance, Machine
from accounting.engine.states import HostState, ProjectState, Settlement
from accounting.ledger.partitions import month_of
from accounting.rpc import sql as rpc_sql
from accounting.rpc.contact_log import NOTHING_ANSWERED, LastAnswer
from accounting.rpc.description import Description
from portal.clients.wants import APART, Query, Row, Step, Steps, fetch

EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND: Final = dt.timedelta(microseconds=1)


def to_us(moment: dt.datetime) -> int:
    """Microseconds since 1970."""
    return (moment - EPOCH) // _MICROSECOND


@dataclass(slots=True)
class Account:
    """All that was read for one request."""

    user_id: int
    user_name: str
    host_id: int
    token: str
    machine: Machine | None
    hardware_digest: bytes
    venue: str
    contacts: int
    state: HostState
    key_id: int | None
    key_host_id: int | None
    key_used_at: dt.datetime | None
    # Of the key that the client sends, or is given now; its account key at the site's own project is derived from it.
    key_hash: bytes = b""
    cpid: str = ""
    # BOINC's names of its platform and of its devices' types, and of types that no project may use here.
    platform: str = ""
    device_types: tuple[str, ...] = ()
    excluded_types: tuple[str, ...] = ()
    # Whether its owner may be handed account keys at projects: not before the address is confirmed, if that is demanded
    may_have_keys: bool = True
    # Its last answer, and how often it was given (accounting/rpc/contact_log.py)
    answered: LastAnswer = NOTHING_ANSWERED
    projects: dict[int, ProjectState] = field(default_factory=dict)
    wishes: dict[int, HostWishes] = field(default_factory=dict)
    # The troubles that it had with projects, and when it last said so (accounting/engine/choice/troubles.py)
    troubles: dict[int, tuple[StoredTroubles, int | None]] = field(default_factory=dict)
    # Its numbers at the projects, by our id of the project
    hostids: dict[int, int] = field(default_factory=dict)
    choices: dict[int, Wish] = field(default_factory=dict)
    account_keys: dict[int, bytes] = field(default_factory=dict)
    # (micro-credits in all, credits a day) by project
    user_totals: dict[int, tuple[int, float]] = field(default_factory=dict)
    preferences: dict[str, Any] = field(default_factory=dict)
    preferences_at: dt.datetime | None = None
    keywords_yes: tuple[int, ...] = ()
    keywords_no: tuple[int, ...] = ()
    team_name: str = ""
    no_project_notices: bool = False
    sends_tasks: bool = True


class AccountRow(NamedTuple):
    """The row that the read returns for one request; JSON as text."""

    n: int
    user_id: int
    user_name: str
    email: str
    host_id: int
    token: str
    ncpus: int
    p_fpops: float | None
    coprocs: str
    hardware_digest: str
    venue: str
    last_at_us: int | None
    client_now: float | None
    level: str
    contacts: int
    platform: str
    excluded_types: str
    answer_digest: str
    answers_logged: int
    same_answers: int
    cpid: str
    may_have_keys: bool
    key_id: int | None
    key_host_id: int | None
    key_used_at: dt.datetime | None
    projects: str | None
    choices: str | None
    settings: str | None


@dataclass(frozen=True, slots=True, eq=False)
class ReadByKey(Query):
    """The account of a client's key and host token; None if one is unknown or the two do not belong together."""

    key_hash: bytes
    token: str

    is_write = False

    @property
    def kind(self) -> Hashable:
        return ReadByKey

    @staticmethod
    def steps(several: Sequence[ReadByKey], *, apart: bool) -> Sequence[Step]:
        hashes = ",".join([f'"\\\\x{each.key_hash.hex()}"' for each in several])
        params = {
            "key_hashes": f"{{{hashes}}}",
            "tokens": _texts([each.token for each in several]),
            "confirmed_only": settings.CONFIRMED_EMAIL_FOR_PROJECTS,
        }
        return [Step(rpc_sql.READ_BY_KEY, params)]

    @staticmethod
    def found(several: Sequence[ReadByKey], rows: Sequence[Row]) -> Sequence[Account | None]:
        accounts: list[Account | None] = [None] * len(several)
        for row in map(AccountRow._make, rows):
            accounts[row.n - 1] = _account(row, several[row.n - 1].key_hash)
        return accounts


def read_by_host(host_id: int, key_hash: bytes) -> Steps[Account | None]:
    params = {"host_id": host_id, "confirmed_only": settings.CONFIRMED_EMAIL_FOR_PROJECTS}
    rows = yield from fetch(Step(rpc_sql.READ_BY_HOST, params))
    return _account(AccountRow(*rows[0]), key_hash) if rows else None


def _account(row: AccountRow, key_hash: bytes) -> Account:
    devices = orjson.loads(row.coprocs)
    account = Account(
        user_id=row.user_id,
        user_name=row.user_name or row.email.split("@")[0],
        host_id=row.host_id,
        token=row.token,
        machine=_machine(row.ncpus, float(row.p_fpops or 0), devices),
        hardware_digest=bytes.fromhex(row.hardware_digest),
        venue=row.venue,
        contacts=row.contacts,
        state=HostState(row.last_at_us, row.client_now, Allowance._make(orjson.loads(row.level))),
        key_id=row.key_id,
        key_host_id=row.key_host_id,
        key_used_at=row.key_used_at,
        key_hash=key_hash,
        platform=row.platform,
        device_types=device_types(devices),
        excluded_types=tuple(orjson.loads(row.excluded_types)),
        cpid=row.cpid,
        may_have_keys=row.may_have_keys,
        answered=LastAnswer(row.answer_digest, row.answers_logged, row.same_answers),
    )
    if row.projects:
        # Not by orjson: totals may have more digits than 64 bits hold.
        _take_projects(account, json.loads(row.projects))
    if row.choices:
        _take_choices(account, orjson.loads(row.choices))
    if row.settings:
        account.preferences, at, yes, no, account.team_name, *switches = orjson.loads(row.settings)
        account.no_project_notices, account.sends_tasks = switches
        account.preferences_at = dt.datetime.fromisoformat(at) if at else None
        account.keywords_yes, account.keywords_no = tuple(yes), tuple(no)
    return account


def _machine(ncpus: int, p_fpops: float, devices: list[dict[str, Any]]) -> Machine | None:
    """The stored hardware as the ledger sees it; None for a host whose hardware was never reported."""
    if not ncpus and not devices:
        return None
    gpus = tuple((int(d.get("count") or 0), int(d.get("peak_flops") or 0)) for d in devices)
    return Machine(ncpus, int(p_fpops), gpus)


def _totals(values: Sequence[int] | None) -> Totals | None:
    return None if values is None else Totals._make(values)


def _take_projects(account: Account, rows: Iterable[Sequence[Any]]) -> None:
    for id_, reported, earlier, handed, credited, pending, dropped, listed, *wishes, restart in rows:
        account.projects[id_] = ProjectState(
            id_,
            _totals(reported),
            tuple(map(Totals._make, earlier)),
            Totals._make(credited),
            Totals._make(pending),
            Totals._make(dropped),
            _totals(handed),
            listed,
            _totals(restart),
        )
        suspended, told, no_new_work, excluded, no_rsc, update_asked, drop_waiting, troubles, at_secs, hostid = wishes
        account.wishes[id_] = HostWishes(
            suspended, no_new_work, excluded, tuple(no_rsc), update_asked, drop_waiting, told
        )
        if troubles:
            account.troubles[id_] = troubles, at_secs
        if hostid:
            account.hostids[id_] = hostid


def _take_choices(account: Account, rows: Iterable[Sequence[Any]]) -> None:
    for id_, is_chosen, share, account_key, total_ec, avg_ec in rows:
        account.choices[id_] = Wish(is_chosen, share)
        account.user_totals[id_] = (total_ec, avg_ec)
        if account_key:
            account.account_keys[id_] = account_key.encode()


_SIX: Final = '"{%s,%s,%s,%s,%s,%s}"'
_SIX_EACH: Final = _SIX.strip('"')
_NO_WORK: Final = _SIX % NO_WORK


def _amounts(values: Iterable[Totals | None]) -> str:
    """An array literal whose elements are array literals of six numbers, or NULL."""
    return "{" + ",".join(["NULL" if v is None else _NO_WORK if v == NO_WORK else _SIX % v for v in values]) + "}"


def _lists(values: Iterable[Sequence[Totals]]) -> str:
    """An array literal whose elements are array literals of arrays of six numbers."""
    return "{" + ",".join([f'"{{{",".join([_SIX_EACH % totals for totals in each])}}}"' for each in values]) + "}"


def _array(values: Sequence[float | None]) -> str:
    """An array literal of numbers of 64 bits, or of booleans; cheaper than a list parameter."""
    return f"{{{orjson.dumps(values).decode()[1:-1]}}}"


def _texts(values: Sequence[str | None]) -> str:
    """An array literal of texts without control characters, which JSON quotes as arrays do; None is NULL."""
    return f"{{{orjson.dumps(values).decode()[1:-1]}}}"


_project_id: Final = attrgetter("project_id")


class KeptTasks(NamedTuple):
    """A list of tasks as `accounting.models.TaskList` has it; ``tasks`` as JSON."""

    tasks: str
    left_out: int


@dataclass(frozen=True, slots=True, eq=False)
class Write(Query):
    """Store a settlement. Found: True; None, and nothing is written, if another request of the host came between.

    ``rows``: the host's project rows to write; ``states``: what the client said of each listed project, for the pages.
    ``answer``: what the client is answered, as `contact_log.summarise` says it; a row only if it is not as before.
    ``described``: the computer's new description, if it has one. ``tasks``: the list of its tasks, if it sent one that
    is kept.
    The reply must carry the wishes as they are in ``account``: they are stored as told here.
    """

    account: Account
    settlement: Settlement
    rows: Sequence[ProjectState]
    states: Mapping[int, dict[str, Any]]
    now: dt.datetime
    contact: dict[str, object]
    answer: str
    described: Description | None = None
    tasks: KeptTasks | None = None

    is_write = True

    @property
    def kind(self) -> Hashable:
        return Write, self.now.year, self.now.month

    @property
    def owner(self) -> Hashable:
        return self.account.host_id

    @staticmethod
    def steps(several: Sequence[Write], *, apart: bool) -> Sequence[Step]:
        ordered = sorted(several, key=lambda each: each.account.host_id)
        notes = [note for each in ordered if each.settlement.notes for note in each.note_rows()]
        answers: list[dict[str, Any]] = []
        params = _ledger_params(ordered, answers) | _project_params(ordered) | _day_params(ordered)
        described = [each for each in ordered if each.described is not None]
        if notes:
            # Not by orjson: amounts may have more digits than 64 bits hold.
            params["notes"] = json.dumps(notes)
        if answers:
            params["answers"] = orjson.dumps(answers).decode()
        if listing := [each for each in ordered if each.tasks is not None]:
            params |= _task_params(listing)
        if described:
            params["described_ids"] = _array([each.account.host_id for each in described])
            params["described"] = orjson.dumps([each.description_row() for each in described]).decode()
        statement = rpc_sql.write(
            month_of(ordered[0].now.date()),
            waits=apart,
            notes=bool(notes),
            answers=bool(answers),
            described=bool(described),
            tasks=bool(listing),
        )
        return [Step(statement, params)]

    @staticmethod
    def found(several: Sequence[Write], rows: Sequence[Row]) -> Sequence[Any]:
        written = {host_id for (host_id,) in rows}
        # Another transaction may hold the rows of the missing ones, or may have written them.
        return [each.account.host_id in written or APART for each in several]

    def suspensions(self) -> set[int]:
        """Suspended projects that the client was told of; it has to be told of the end of each suspension.

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
        assert self.described is not None  # asked for those only
        return {"host_id": self.account.host_id, "description": self.described.columns}

    def answer_row(self, answered: LastAnswer) -> dict[str, Any]:
        last_at_us = self.account.state.last_at_us
        return {
            "host_id": self.account.host_id,
            "slot": answered.slot,
            "content": orjson.Fragment(self.answer),
            "before_times": self.account.answered.same,
            "before_last_at": None if last_at_us is None else (EPOCH + last_at_us * _MICROSECOND).isoformat(),
        }

    def note_rows(self) -> Iterable[dict[str, Any]]:
        """One row per kind, project and detail, as the same key may not come twice in one statement."""
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
    """The parameters for the ledgers; appends to ``answers`` each answer that differs from the last one."""
    answered = []
    for each in several:
        after, is_new = each.account.answered.then(each.answer)
        answered.append(after)
        if is_new:
            answers.append(each.answer_row(after))
    return {
        "n_host_id": _array([each.account.host_id for each in several]),
        "n_contacts": _array([each.account.contacts for each in several]),
        "n_now": f"{{{','.join([each.now.isoformat() for each in several])}}}",
        "n_client_now": _array([each.settlement.host.client_now for each in several]),
        "n_level": _texts([_array(tuple(each.settlement.host.level)) for each in several]),
        "n_contact": _texts([orjson.dumps(each.contact).decode() for each in several]),
        "n_answer_digest": _texts([after.digest for after in answered]),
        "n_answers_logged": _array([after.logged for after in answered]),
        "n_same_answers": _array([after.same for after in answered]),
    }


def _task_params(several: Sequence[Write]) -> dict[str, str]:
    listed = [(each.account.host_id, each.tasks) for each in several if each.tasks is not None]
    return {
        "t_host_id": _array([host_id for host_id, _ in listed]),
        "t_tasks": _texts([each.tasks for _, each in listed]),
        "t_left_out": _array([each.left_out for _, each in listed]),
    }


def _project_params(several: Sequence[Write]) -> dict[str, str]:
    hosts: list[int] = []
    rows: list[ProjectState] = []
    states: list[str | None] = []
    told_suspended: list[bool] = []
    told_updates: list[bool] = []
    for each in several:
        suspensions, updates = each.suspensions(), each.updates()
        for row in sorted(each.rows, key=_project_id):
            id_ = row.project_id
            hosts.append(each.account.host_id)
            rows.append(row)
            states.append(orjson.dumps(each.states[id_]).decode() if id_ in each.states else None)
            told_suspended.append(id_ in suspensions)
            told_updates.append(id_ in updates)
    return {
        "p_host_id": _array(hosts),
        "p_id": _array([row.project_id for row in rows]),
        "p_reported": _amounts([row.reported for row in rows]),
        "p_earlier": _lists([row.earlier for row in rows]),
        "p_restart": _amounts([row.restart for row in rows]),
        "p_handed": _amounts([row.handed for row in rows]),
        "p_credited": _amounts([row.credited for row in rows]),
        "p_pending": _amounts([row.pending for row in rows]),
        "p_dropped": _amounts([row.dropped for row in rows]),
        "p_listed": _array([row.listed for row in rows]),
        "p_state": _texts(states),
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
    for each in several:
        credits_, flags_of = each.settlement.credits, each.settlement.flags
        for id_ in sorted(credits_.keys() | flags_of.keys()):
            hosts.append(each.account.host_id)
            users.append(each.account.user_id)
            days.append(each.now.date().isoformat())
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
