"""The reads of the account-manager RPC, batched with those of other requests; `accounting.rpc.writes` has the write.

accounting/rpc/sql.py has the statements, and says what they lock and in which order.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import orjson
from django.conf import settings

from accounting.engine.amounts import NO_WORK, Totals
from accounting.engine.choice.facts import Wish, device_types
from accounting.engine.choice.troubles import StoredTroubles
from accounting.engine.host_wishes import HostWishes
from accounting.engine.machine import Allowance, Machine
from accounting.engine.states import NO_KINDS, HostState, ProjectState, Settlement
from accounting.rpc import sql as rpc_sql
from accounting.rpc.contact_log import NOTHING_ANSWERED, LastAnswer
from portal.clients.wants import Query, Row, Step, fetch

EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND: Final = dt.timedelta(microseconds=1)


def to_us(moment: dt.datetime) -> int:
    """Microseconds since 1970."""
    return (moment - EPOCH) // _MICROSECOND


def from_us(us: int) -> dt.datetime:
    """The moment this many microseconds after the beginning of 1970."""
    return EPOCH + us * _MICROSECOND


def texts(values: Sequence[str | None]) -> str:
    """An array literal of texts without control characters, which JSON quotes as arrays do; None is NULL."""
    return f"{{{orjson.dumps(values).decode()[1:-1]}}}"


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
    # Projects that were not attached by us when it last listed them (accounting/rpc/attachments.py)
    attached_by_owner: set[int] = field(default_factory=set)
    # Projects whose totals could not all be read when it last listed them
    faulty: set[int] = field(default_factory=set)
    choices: dict[int, Wish] = field(default_factory=dict)
    account_keys: dict[int, bytes] = field(default_factory=dict)
    # (micro-credits in all, credits a day) by project
    user_totals: dict[int, tuple[int, float]] = field(default_factory=dict)
    # When these were summed up, and this computer's micro-credits since a time when that had been done, by project
    summed_at: dict[int, int] = field(default_factory=dict)
    unsummed_since: dict[int, tuple[int | None, int]] = field(default_factory=dict)
    preferences: dict[str, Any] = field(default_factory=dict)
    preferences_at: dt.datetime | None = None
    keywords_yes: tuple[int, ...] = ()
    keywords_no: tuple[int, ...] = ()
    team_name: str = ""
    no_project_notices: bool = False
    sends_tasks: bool = True

    def unsummed(self, project_id: int, settlement: Settlement) -> int:
        """This computer's micro-credits at a project that the volunteer's total does not have yet."""
        summed_at, amount = self.unsummed_since.get(project_id, (None, 0))
        return settlement.credits.get(project_id, NO_WORK).credit + (
            amount if summed_at == self.summed_at.get(project_id) else 0
        )


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
    p_model: str
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
class ReadByKey(Query["Account | None"]):
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
            "tokens": texts([each.token for each in several]),
            "confirmed_only": settings.CONFIRMED_EMAIL_FOR_PROJECTS,
        }
        return [Step(rpc_sql.READ_BY_KEY, params)]

    @staticmethod
    def results(several: Sequence[ReadByKey], rows: Sequence[Row]) -> Sequence[Account | None]:
        accounts: list[Account | None] = [None] * len(several)
        for row in map(AccountRow._make, rows):
            accounts[row.n - 1] = _account(row, several[row.n - 1].key_hash)
        return accounts


async def read_by_host(host_id: int, key_hash: bytes) -> Account | None:
    params = {"host_id": host_id, "confirmed_only": settings.CONFIRMED_EMAIL_FOR_PROJECTS}
    rows = await fetch(Step(rpc_sql.READ_BY_HOST, params))
    return _account(AccountRow(*rows[0]), key_hash) if rows else None


def _account(row: AccountRow, key_hash: bytes) -> Account:
    devices = orjson.loads(row.coprocs)
    account = Account(
        user_id=row.user_id,
        user_name=row.user_name or row.email.split("@")[0],
        host_id=row.host_id,
        token=row.token,
        machine=_machine(row.ncpus, float(row.p_fpops or 0), row.p_model, devices),
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


def _machine(ncpus: int, p_fpops: float, p_model: str, devices: list[dict[str, Any]]) -> Machine | None:
    """The stored hardware as the ledger sees it; None for a host whose hardware was never reported."""
    if not ncpus and not devices:
        return None
    gpus = tuple((int(d.get("count") or 0), int(d.get("peak_flops") or 0)) for d in devices)
    return Machine(ncpus, int(p_fpops), gpus, p_model, tuple(str(d.get("name") or "") for d in devices))


def _totals(values: Sequence[int] | None) -> Totals | None:
    return None if values is None else Totals._make(values)


def _take_projects(account: Account, rows: Iterable[Sequence[Any]]) -> None:
    for id_, reported, earlier, handed, credited, pending, dropped, listed, *wishes, restart, broken in rows:
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
            frozenset(broken) if broken else NO_KINDS,
        )
        suspended, told, no_new_work, excluded, no_rsc, update_asked, drop_waiting, *state = wishes
        troubles, at_secs, hostid, by_owner, faulty, unsummed = state
        account.wishes[id_] = HostWishes(
            suspended, no_new_work, excluded, tuple(no_rsc), update_asked, drop_waiting, told
        )
        if troubles:
            account.troubles[id_] = troubles, at_secs
        if hostid:
            account.hostids[id_] = hostid
        if by_owner:
            account.attached_by_owner.add(id_)
        if faulty:
            account.faulty.add(id_)
        if unsummed:
            account.unsummed_since[id_] = tuple(unsummed)


def _take_choices(account: Account, rows: Iterable[Sequence[Any]]) -> None:
    for id_, is_chosen, share, account_key, total_ec, avg_ec, summed_at in rows:
        account.choices[id_] = Wish(is_chosen, share)
        if summed_at is not None:
            account.summed_at[id_] = summed_at
        account.user_totals[id_] = (total_ec, avg_ec)
        if account_key:
            account.account_keys[id_] = account_key.encode()
