"""The reads of the account-manager RPC, batched with those of other requests; `accounting.rpc.writes` has the write.

accounting/rpc/read.sql is the statement; `accounting.rpc.rows` has the rows that it returns.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson
from django.conf import settings

from accounting.engine.amounts import NO_WORK
from accounting.engine.choice.facts import Wish, device_types
from accounting.engine.choice.troubles import StoredTroubles
from accounting.engine.host_wishes import HostWishes
from accounting.engine.machine import Machine
from accounting.engine.states import NO_KINDS, HostState, LedgerChanges, ProjectState
from accounting.rpc import sql as rpc_sql
from accounting.rpc.contact_log import NOTHING_ANSWERED, LastAnswer
from accounting.rpc.rows import ACCOUNT, AccountRow, ChoiceRow, ProjectRow
from portal.clients.database.json_rows import decode
from portal.clients.effects import Query, Row, Step

EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND: Final = dt.timedelta(microseconds=1)


def to_us(moment: dt.datetime) -> int:
    """Return microseconds since 1970."""
    return (moment - EPOCH) // _MICROSECOND


def from_us(us: int) -> dt.datetime:
    """Return the moment this many microseconds after the beginning of 1970."""
    return EPOCH + us * _MICROSECOND


def texts(values: Sequence[str | None]) -> str:
    """Return an array literal of texts without control characters, which JSON quotes as arrays do; None is NULL."""
    return f"{{{orjson.dumps(values).decode()[1:-1]}}}"


@dataclass(slots=True)
class Account:
    """Everything read for one request."""

    user_id: int
    user_name: str
    host_id: int
    token: str
    machine: Machine | None
    hardware_digest: bytes
    venue: str
    contacts: int
    state: HostState
    key_id: int
    key_used_at: dt.datetime | None
    # The key that the client sends, or is given now; its account key at the site's own project is derived from it.
    key_hash: bytes = b""
    cpid: str = ""
    # BOINC's names of its platform, of its devices' types, and of types that no project may use here.
    platform: str = ""
    device_types: tuple[str, ...] = ()
    excluded_types: tuple[str, ...] = ()
    # Whether its owner may get account keys at projects: not before the address is confirmed, if that is required
    may_have_keys: bool = True
    # Its last answer, and how often it was given (accounting/rpc/contact_log.py)
    answered: LastAnswer = NOTHING_ANSWERED
    projects: dict[int, ProjectState] = field(default_factory=dict)
    wishes: dict[int, HostWishes] = field(default_factory=dict)
    # The troubles that it had with projects, and when it last reported them (accounting/engine/choice/troubles.py)
    troubles: dict[int, tuple[StoredTroubles, int | None]] = field(default_factory=dict)
    # Its numbers at the projects, by our id of the project
    hostids: dict[int, int] = field(default_factory=dict)
    # Projects not attached by us when it last listed them (accounting/rpc/attachments.py)
    attached_by_owner: set[int] = field(default_factory=set)
    # Projects with unreadable totals when it last listed them
    faulty: set[int] = field(default_factory=set)
    choices: dict[int, Wish] = field(default_factory=dict)
    account_keys: dict[int, bytes] = field(default_factory=dict)
    # (micro-credits in all, credits a day) by project
    user_totals: dict[int, tuple[int, float]] = field(default_factory=dict)
    # When these were summed up, and by project this computer's micro-credits since an earlier summation
    summed_at: dict[int, int] = field(default_factory=dict)
    unsummed_since: dict[int, tuple[int | None, int]] = field(default_factory=dict)
    preferences: dict[str, Any] = field(default_factory=dict)
    preferences_at: dt.datetime | None = None
    keywords_yes: tuple[int, ...] = ()
    keywords_no: tuple[int, ...] = ()
    team_name: str = ""
    no_project_notices: bool = False
    sends_tasks: bool = True

    def unsummed(self, project_id: int, settlement: LedgerChanges) -> int:
        """This computer's micro-credits at a project that are not yet in the volunteer's total."""
        summed_at, amount = self.unsummed_since.get(project_id, (None, 0))
        return settlement.credits.get(project_id, NO_WORK).credit + (
            amount if summed_at == self.summed_at.get(project_id) else 0
        )


@dataclass(frozen=True, slots=True, eq=False)
class ReadByKey(Query["Account | None"]):
    """Read the account of a client's key and host token; None if one is unknown or the two do not belong together."""

    key_hash: bytes
    token: str

    is_write = False

    @property
    def kind(self) -> Hashable:
        return ReadByKey

    @staticmethod
    def steps(several: Sequence[ReadByKey], *, alone: bool) -> Sequence[Step]:
        hashes = ",".join([f'"\\\\x{request.key_hash.hex()}"' for request in several])
        params = {
            "key_hashes": f"{{{hashes}}}",
            "tokens": texts([request.token for request in several]),
            "confirmed_only": settings.CONFIRMED_EMAIL_FOR_PROJECTS,
        }
        return [Step(rpc_sql.READ, params)]

    @staticmethod
    def results(several: Sequence[ReadByKey], rows: Sequence[Row]) -> Sequence[Account | None]:
        accounts: list[Account | None] = [None] * len(several)
        for row in decode(ACCOUNT, rows):
            accounts[row.n - 1] = _account(row, several[row.n - 1].key_hash)
        return accounts


def _account(row: AccountRow, key_hash: bytes) -> Account:
    account = Account(
        user_id=row.user_id,
        user_name=row.user_name or row.email.split("@")[0],
        host_id=row.host_id,
        token=row.token,
        machine=_machine(row.ncpus, row.p_fpops or 0.0, row.p_model, row.coprocs),
        hardware_digest=bytes.fromhex(row.hardware_digest),
        venue=row.venue,
        contacts=row.contacts,
        state=HostState(row.last_at_us, row.client_now, row.level),
        key_id=row.key_id,
        key_used_at=row.key_used_at,
        key_hash=key_hash,
        platform=row.platform,
        device_types=device_types(row.coprocs),
        excluded_types=row.excluded_types,
        cpid=row.cpid,
        may_have_keys=row.may_have_keys,
        answered=LastAnswer(row.answer_digest, row.answers_logged, row.same_answers),
    )
    for project in row.projects or ():
        _take_project(account, project)
    for choice in row.choices or ():
        _take_choice(account, choice)
    if row.settings:
        account.preferences, account.preferences_at = row.settings.preferences, row.settings.preferences_at
        account.keywords_yes, account.keywords_no = row.settings.keywords_yes, row.settings.keywords_no
        account.team_name = row.settings.team_name
        account.no_project_notices = row.settings.no_project_notices
        account.sends_tasks = row.settings.sends_tasks
    return account


def _machine(ncpus: int, p_fpops: float, p_model: str, devices: list[dict[str, Any]]) -> Machine | None:
    """Return the stored hardware as the ledger sees it; None for a host whose hardware was never reported."""
    if not ncpus and not devices:
        return None
    gpus = tuple((int(d.get("count") or 0), int(d.get("peak_flops") or 0)) for d in devices)
    return Machine(ncpus, int(p_fpops), gpus, p_model, tuple(str(d.get("name") or "") for d in devices))


def _take_project(account: Account, row: ProjectRow) -> None:
    id_ = row.project_id
    account.projects[id_] = ProjectState(
        project_id=id_,
        reported=row.reported,
        earlier=row.earlier,
        credited=row.credited,
        pending=row.pending,
        dropped=row.dropped,
        handed=row.handed,
        listed=row.listed,
        restart=row.restart,
        broken=row.broken or NO_KINDS,
    )
    account.wishes[id_] = HostWishes(
        suspended=row.suspended,
        no_new_work=row.no_new_work,
        excluded=row.excluded,
        no_rsc=row.no_rsc,
        update_asked=row.update_asked,
        drop_waiting=row.drop_waiting,
        told_suspended=row.told_suspended,
    )
    if row.troubles:
        account.troubles[id_] = row.troubles, row.listed_at
    if row.hostid:
        account.hostids[id_] = row.hostid
    if row.by_owner:
        account.attached_by_owner.add(id_)
    if row.faulty:
        account.faulty.add(id_)
    if row.unsummed:
        account.unsummed_since[id_] = row.unsummed


def _take_choice(account: Account, row: ChoiceRow) -> None:
    account.choices[row.project_id] = Wish(row.is_chosen, row.resource_share)
    account.user_totals[row.project_id] = row.total_ec, row.avg_ec
    if row.summed_at is not None:
        account.summed_at[row.project_id] = row.summed_at
    if row.account_key:
        account.account_keys[row.project_id] = row.account_key.encode()
