"""The ledger's two statements: read all that a request needs, write all that it changes.

The write is one statement, so it is one transaction by itself: all or nothing, one fsync. It changes rows only if the
host's ``contacts`` still is what was read; else another request of the same host was faster, and the caller reads
again. Rows are locked in the order host's ledger, host, projects by id, days by project: whoever else writes them
(merging, say) locks the host's ledger row first.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final, NamedTuple

import orjson

from accounting.choice_facts import Wish
from accounting.contact_log import NOTHING_ANSWERED, Answered
from accounting.describing import DESCRIBED, Description
from accounting.engine.amounts import NO_WORK, Totals
from accounting.engine.ledger import HostState, Note, ProjectState, Settlement
from accounting.engine.machine import Machine
from accounting.host_memory import Stored
from accounting.partitions import month_of, partition_of
from portal.prepared import Prepared, array

# One row: the host, its owner, and as JSON the owner's projects and the host's.
_READ: Final = """
SELECT u.id, u.name, u.email, h.id, h.token, h.ncpus, h.p_fpops, h.coprocs, encode(h.hardware_digest, 'hex'), h.venue,
       (extract(epoch FROM l.last_at) * 1000000)::bigint, l.client_now, array_to_json(l.level), l.contacts,
       h.platform_name, array_to_json(l.excluded_types), l.answer_digest, l.answers_logged, l.same_answers, {key},
       (SELECT json_agg(json_build_array(p.project_id, p.reported, p.high, p.handed, p.credited, p.pending, p.dropped,
               p.listed, p.suspended, p.told_suspended, p.no_new_work, p.excluded, p.no_rsc, p.update_asked,
               p.drop_waiting, p.state->'troubles', p.state->'at'))
          FROM accounting_hostproject p WHERE p.host_id = h.id),
       (SELECT json_agg(json_build_array(c.project_id, c.is_chosen, c.resource_share, encode(c.account_key, 'escape'),
               c.total_ec, c.avg_ec))
          FROM accounting_userproject c WHERE c.user_id = u.id),
       (SELECT json_build_array(s.preferences, s.preferences_at, s.keywords_yes, s.keywords_no, s.team_name,
               s.no_project_notices)
          FROM accounting_accountsettings s WHERE s.user_id = u.id)
  FROM {source}
  JOIN accounting_hostledger l ON l.host_id = h.id
"""
READ_BY_KEY: Final = Prepared(
    _READ.format(
        key="k.id, k.host_id, k.last_used_at::text",
        source="""portal_clientkey k
  JOIN portal_user u ON u.id = k.user_id AND u.is_active
  JOIN portal_host h ON h.token = %(token)s::text AND h.owner_id = u.id AND h.merged_into_id IS NULL""",
    )
    + " WHERE k.key_hash = %(key_hash)s::bytea AND k.revoked_at IS NULL"
)
READ_BY_HOST: Final = Prepared(
    _READ.format(
        key="NULL, NULL, NULL",
        source="""portal_host h
  JOIN portal_user u ON u.id = h.owner_id""",
    )
    + " WHERE h.id = %(host_id)s::bigint"
)

_WRITE: Final = """
WITH ledger AS (
  UPDATE accounting_hostledger
     SET last_at = %(now)s::timestamptz, client_now = %(client_now)s::float8, level = %(level)s::bigint[],
         contact = %(contact)s::jsonb, contacts = contacts + 1, answer_digest = %(answer_digest)s::text,
         answers_logged = %(answers_logged)s::integer, same_answers = %(same_answers)s::integer
   WHERE host_id = %(host_id)s::bigint AND contacts = %(contacts)s::bigint
   RETURNING host_id),
host AS (
  UPDATE portal_host h SET last_contact_at = %(now)s::timestamptz, retired_at = NULL{described}
    FROM ledger WHERE h.id = ledger.host_id),
projects AS (
  INSERT INTO accounting_hostproject AS p (host_id, project_id, reported, high, handed, credited, pending, dropped,
         listed, state, suspended, told_suspended, no_new_work, excluded, no_rsc, update_asked,
         drop_waiting)
  SELECT ledger.host_id, n.id, n.reported::numeric[], n.high::numeric[], n.handed::bigint[], n.credited::bigint[],
         n.pending::bigint[], n.dropped::numeric[], n.listed, coalesce(n.state, '{{}}')::jsonb,
         false, false, false, false, '{{}}', false, false
    FROM ledger, unnest(%(ids)s::bigint[], %(reported)s::text[], %(high)s::text[], %(handed)s::text[],
         %(credited)s::text[], %(pending)s::text[], %(dropped)s::text[], %(listed)s::boolean[], %(states)s::text[])
         AS n(id, reported, high, handed, credited, pending, dropped, listed, state)
  ON CONFLICT (host_id, project_id) DO UPDATE
     SET reported = excluded.reported, high = excluded.high, handed = excluded.handed, credited = excluded.credited,
         pending = excluded.pending, dropped = excluded.dropped, listed = excluded.listed,
         state = CASE WHEN excluded.listed THEN excluded.state ELSE p.state END,
         told_suspended = p.project_id = ANY (%(suspensions)s::bigint[]),
         -- The reply carries what was asked when this request was read; a later wish stays for the next one.
         update_asked = p.update_asked AND NOT p.project_id = ANY (%(updates)s::bigint[])),
days AS (
  INSERT INTO {partition} AS d (user_id, day, project_id, host_id,
         cpu_ec, gpu_ec, cpu_time, gpu_time, njobs_success, njobs_error, flags)
  SELECT %(user_id)s::bigint, %(day)s::date, n.id, ledger.host_id, n.a, n.b, n.c, n.d, n.e, n.f, n.flags
    FROM ledger, unnest(%(day_ids)s::bigint[], %(a)s::bigint[], %(b)s::bigint[], %(c)s::bigint[], %(d)s::bigint[],
         %(e)s::bigint[], %(f)s::bigint[], %(flags)s::smallint[]) AS n(id, a, b, c, d, e, f, flags)
  ON CONFLICT (user_id, day, project_id, host_id) DO UPDATE
     SET cpu_ec = d.cpu_ec + excluded.cpu_ec, gpu_ec = d.gpu_ec + excluded.gpu_ec,
         cpu_time = d.cpu_time + excluded.cpu_time, gpu_time = d.gpu_time + excluded.gpu_time,
         njobs_success = d.njobs_success + excluded.njobs_success, njobs_error = d.njobs_error + excluded.njobs_error,
         flags = d.flags | excluded.flags){notes}{answers}
SELECT count(*) FROM ledger
"""
_NOTES: Final = """,
notes AS (
  INSERT INTO accounting_note AS o (host_id, project_id, day, kind, detail, amount, count, first_at, last_at)
  SELECT ledger.host_id, nullif(n.id, 0), %(day)s::date, n.kind, n.detail, n.amount, n.count, %(now)s::timestamptz,
         %(now)s::timestamptz
    FROM ledger, jsonb_to_recordset(%(notes)s::jsonb)
         AS n(id bigint, kind text, detail text, amount numeric, count integer)
  ON CONFLICT (host_id, day, kind, project_id, detail) DO UPDATE
     SET amount = o.amount + excluded.amount, count = o.count + excluded.count, last_at = excluded.last_at)"""
# A ring of the latest answers: the oldest makes room for the new one.
_ANSWERS: Final = """,
answers AS (
  INSERT INTO accounting_answer (host_id, slot, at, content, before_times, before_last_at)
  SELECT ledger.host_id, %(answer_slot)s::smallint, %(now)s::timestamptz, %(answer)s::jsonb,
         %(before_times)s::integer, %(before_last_at)s::timestamptz
    FROM ledger
  ON CONFLICT (host_id, slot) DO UPDATE
     SET at = excluded.at, content = excluded.content, before_times = excluded.before_times,
         before_last_at = excluded.before_last_at)"""
_DESCRIBED: Final = f""",
         ({", ".join(DESCRIBED)}) =
         (SELECT {", ".join(f"d.{column}" for column in DESCRIBED)}
            FROM jsonb_populate_record(h, %(description)s::jsonb) d)"""


@lru_cache(maxsize=32)
def _write_statement(month: dt.date, *, notes: bool, answers: bool, described: bool) -> Prepared:
    return Prepared(
        _WRITE.format(
            # The month's own table: PostgreSQL then need not look for it, and refuses a day of another month.
            partition=partition_of(month),
            notes=_NOTES if notes else "",
            answers=_ANSWERS if answers else "",
            described=_DESCRIBED if described else "",
        )
    )


EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND: Final = dt.timedelta(microseconds=1)


def to_us(moment: dt.datetime) -> int:
    """Microseconds since 1970."""
    return (moment - EPOCH) // _MICROSECOND


class Wishes(NamedTuple):
    """What a host's owner wants of one project on this host."""

    suspended: bool
    told_suspended: bool
    no_new_work: bool
    excluded: bool
    no_rsc: tuple[str, ...]
    update_asked: bool
    drop_waiting: bool


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
    # Of the key that its client comes with, or is handed now; the key for the site's own project is made of it.
    key_hash: bytes = b""
    # What it runs: BOINC's names of its platform and of the types of its devices; and those that it may not use.
    platform: str = ""
    device_types: tuple[str, ...] = ()
    excluded_types: tuple[str, ...] = ()
    # What it was answered last, and how often (accounting/contact_log.py)
    answered: Answered = NOTHING_ANSWERED
    projects: dict[int, ProjectState] = field(default_factory=dict)
    wishes: dict[int, Wishes] = field(default_factory=dict)
    # What it met at projects, and when it last said so (accounting/host_memory.py)
    met: dict[int, tuple[Stored, int | None]] = field(default_factory=dict)
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


def read_by_key(key_hash: bytes, token: str) -> Account | None:
    """The account that a client's key and host token name; None if either is unknown or they don't fit together."""
    account = _account(READ_BY_KEY.fetch_one({"key_hash": f"\\x{key_hash.hex()}", "token": token}))
    if account is not None:
        account.key_hash = key_hash
    return account


def read_by_host(host_id: int) -> Account | None:
    return _account(READ_BY_HOST.fetch_one({"host_id": str(host_id)}))


def _account(row: list[Any] | None) -> Account | None:
    if row is None:
        return None
    (
        user_id, name, email, host_id, token, ncpus, p_fpops, coprocs, digest, venue, last_at_us, client_now, level,
        contacts, platform, excluded_types, digest_of_answer, logged, same, key_id, key_host_id, key_used_at,
        projects, choices, settings,
    ) = row  # fmt: skip
    devices = orjson.loads(coprocs)
    account = Account(
        user_id=int(user_id),
        user_name=name or email.split("@")[0],
        host_id=int(host_id),
        token=token,
        machine=_machine(int(ncpus), float(p_fpops or 0), devices),
        hardware_digest=bytes.fromhex(digest),
        venue=venue,
        contacts=int(contacts),
        state=HostState(
            int(last_at_us) if last_at_us else None,
            float(client_now) if client_now else None,
            tuple(orjson.loads(level)),
        ),
        key_id=int(key_id) if key_id else None,
        key_host_id=int(key_host_id) if key_host_id else None,
        key_used_at=dt.datetime.fromisoformat(key_used_at) if key_used_at else None,
        platform=platform,
        device_types=device_types(devices),
        excluded_types=tuple(orjson.loads(excluded_types)),
        answered=Answered(digest_of_answer, int(logged), int(same)),
    )
    if projects:
        # Not by orjson: totals may have more digits than 64 bits hold.
        _take_projects(account, json.loads(projects))
    if choices:
        _take_choices(account, orjson.loads(choices))
    if settings:
        account.preferences, at, yes, no, account.team_name, account.no_project_notices = orjson.loads(settings)
        account.preferences_at = dt.datetime.fromisoformat(at) if at else None
        account.keywords_yes, account.keywords_no = tuple(yes), tuple(no)
    return account


def device_types(devices: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """BOINC's names of the types of the devices that there are, without repeats."""
    return tuple(dict.fromkeys(str(d["type"]) for d in devices if d.get("type") and d.get("count")))


def _machine(ncpus: int, p_fpops: float, devices: list[dict[str, Any]]) -> Machine | None:
    """The stored hardware as the ledger sees it; None for a host whose hardware was never reported."""
    if not ncpus and not devices:
        return None
    gpus = tuple((int(d.get("count") or 0), int(d.get("peak_flops") or 0)) for d in devices)
    return Machine(ncpus, int(p_fpops), gpus)


def _totals(values: Sequence[int] | None) -> Totals | None:
    return None if values is None else tuple(values)  # type: ignore[return-value]  # six, by constraint


def _take_projects(account: Account, rows: Iterable[Sequence[Any]]) -> None:
    for id_, reported, high, handed, credited, pending, dropped, listed, *wishes in rows:
        account.projects[id_] = ProjectState(
            id_,
            _totals(reported),
            _totals(high),
            tuple(credited),
            tuple(pending),
            tuple(dropped),
            _totals(handed),
            listed,
        )
        suspended, told, no_new_work, excluded, no_rsc, update_asked, drop_waiting, troubles, at_secs = wishes
        account.wishes[id_] = Wishes(suspended, told, no_new_work, excluded, tuple(no_rsc), update_asked, drop_waiting)
        if troubles:
            account.met[id_] = troubles, at_secs


def _take_choices(account: Account, rows: Iterable[Sequence[Any]]) -> None:
    for id_, is_chosen, share, account_key, total_ec, avg_ec in rows:
        account.choices[id_] = Wish(is_chosen, share)
        account.user_totals[id_] = (total_ec, avg_ec)
        if account_key:
            account.account_keys[id_] = account_key.encode()


_SIX: Final = '"{%s,%s,%s,%s,%s,%s}"'
_NO_WORK: Final = _SIX % NO_WORK


def _arrays(values: Iterable[Totals | None]) -> str:
    """An array literal whose elements are array literals of six numbers, or NULL."""
    return "{" + ",".join(["NULL" if v is None else _NO_WORK if v == NO_WORK else _SIX % v for v in values]) + "}"


def _texts(values: Sequence[str | None]) -> str:
    """An array literal of texts without control characters, which JSON quotes as arrays do; None is NULL."""
    return f"{{{orjson.dumps(values).decode()[1:-1]}}}"


_project_id: Final = attrgetter("project_id")


def write(
    account: Account,
    settlement: Settlement,
    rows: Sequence[ProjectState],
    states: Mapping[int, dict[str, Any]],
    *,
    now: dt.datetime,
    contact: dict[str, object],
    answer: str,
    described: Description | None = None,
) -> bool:
    """Store a settlement; False, and nothing is written, if another request of the host came between.

    ``rows``: the host's project rows to write; ``states``: what the client said of each listed project, for the pages.
    ``answer``: what the client is answered, as `contact_log.summarise` says it; a row only if it is not as before.
    ``described``: the computer's new description, if it has one.
    The reply is to carry the wishes as they are in ``account``: that they were told is stored here.
    """
    day = now.date()
    answered, is_new_answer = account.answered.then(answer)
    rows = sorted(rows, key=_project_id)
    client_now = settlement.host.client_now
    params: dict[str, str | None] = {
        "host_id": str(account.host_id),
        "user_id": str(account.user_id),
        "contacts": str(account.contacts),
        "now": now.isoformat(),
        "day": day.isoformat(),
        "client_now": None if client_now is None else repr(client_now),
        "level": array(settlement.host.level),
        "contact": orjson.dumps(contact).decode(),
        "answer_digest": answered.digest,
        "answers_logged": str(answered.logged),
        "same_answers": str(answered.same),
        "updates": array([id_ for id_, wishes in account.wishes.items() if wishes.update_asked]),
        "suspensions": array(_suspensions(account, states)),
        **_project_params(rows, states),
        **_day_params(settlement),
    }
    if settlement.notes:
        params["notes"] = json.dumps(_note_rows(settlement.notes))
    if is_new_answer:
        params |= _answer_params(account, answered, answer)
    if described is not None:
        params["description"] = json.dumps(described.columns)
    statement = _write_statement(
        month_of(day), notes=bool(settlement.notes), answers=is_new_answer, described=described is not None
    )
    return statement.fetch_one(params) == ["1"]


def _answer_params(account: Account, answered: Answered, answer: str) -> dict[str, str | None]:
    last_at_us = account.state.last_at_us
    return {
        "answer": answer,
        "answer_slot": str(answered.slot),
        "before_times": str(account.answered.same),
        "before_last_at": None if last_at_us is None else (EPOCH + last_at_us * _MICROSECOND).isoformat(),
    }


def _suspensions(account: Account, states: Mapping[int, dict[str, Any]]) -> list[int]:
    """Projects whose suspension has been told and whose end has to be told yet.

    A client that still has it suspended may not have got the reply that ended it.
    """
    return [
        id_
        for id_, wishes in account.wishes.items()
        if wishes.suspended or (wishes.told_suspended and states.get(id_, {}).get("suspended"))
    ]


def _project_params(rows: Sequence[ProjectState], states: Mapping[int, dict[str, Any]]) -> dict[str, str]:
    ids = [row.project_id for row in rows]
    return {
        "ids": array(ids),
        "reported": _arrays([row.reported for row in rows]),
        "high": _arrays([row.high for row in rows]),
        "handed": _arrays([row.handed for row in rows]),
        "credited": _arrays([row.credited for row in rows]),
        "pending": _arrays([row.pending for row in rows]),
        "dropped": _arrays([row.dropped for row in rows]),
        "listed": array([row.listed for row in rows]),
        "states": _texts([orjson.dumps(states[id_]).decode() if id_ in states else None for id_ in ids]),
    }


def _day_params(settlement: Settlement) -> dict[str, str]:
    ids = sorted(settlement.credits.keys() | settlement.flags.keys())
    amounts = [settlement.credits.get(id_, NO_WORK) for id_ in ids]
    columns = list(zip(*amounts, strict=True)) if amounts else [()] * 6
    params = {letter: array(column) for letter, column in zip("abcdef", columns, strict=True)}
    params["day_ids"] = array(ids)
    params["flags"] = array([settlement.flags.get(id_, 0) for id_ in ids])
    return params


def _note_rows(notes: Iterable[Note]) -> list[dict[str, object]]:
    """One row per kind, project and detail, as the same key may not come twice in one statement."""
    rows: dict[tuple[object, ...], dict[str, object]] = {}
    for note in notes:
        detail = (note.detail or note.amount_kind or "")[:300]
        row = rows.setdefault(
            (note.kind, note.project_id, detail),
            {"id": note.project_id or 0, "kind": str(note.kind), "detail": detail, "amount": 0, "count": 0},
        )
        row["amount"] = int(str(row["amount"])) + note.amount
        row["count"] = int(str(row["count"])) + 1
    return list(rows.values())
