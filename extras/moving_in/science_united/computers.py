"""Computers of Science United, what they last reported of each project, and what their owners did not want."""

from __future__ import annotations

from typing import Final

from extras.moving_in.boinc.values import ascii_text, line
from extras.moving_in.engine import amounts
from extras.moving_in.engine.tally import Tally
from extras.moving_in.engine.values import FIRST_SECS, BrokenRow, secs, whole
from extras.moving_in.machinery.steps import Check, Context, RowStep, Translate, Translated, refers_to, updated
from extras.moving_in.science_united.people import OWNER, UNKNOWN_OWNER
from extras.moving_in.science_united.projects import project_keys
from extras.moving_in.source import Row, Table

_HIDDEN: Final = -1
_MAX_BYTES: Final = 1 << 62
_MAX_SPEED: Final = 1e18
UNKNOWN_COMPUTER: Final = "its computer is missing here"
UNKNOWN_PROJECT: Final = "its project does not exist there"
_HERE_SINCE: Final = "was here already: what it reported stays"
_NUMBERS: Final = {
    "p_fpops": _MAX_SPEED,
    "p_iops": _MAX_SPEED,
    "p_membw": _MAX_SPEED,
    "m_nbytes": _MAX_BYTES,
    "m_cache": _MAX_BYTES,
    "m_swap": _MAX_BYTES,
    "d_total": _MAX_BYTES,
}
_TEXTS: Final = {
    "domain_name": 255,
    "boinc_client_version": 32,
    "p_vendor": 128,
    "p_model": 256,
    "p_features": 512,
    "os_name": 128,
    "os_version": 256,
    "product_name": 256,
    "virtualbox_version": 64,
}
_COLUMNS: Final = {
    "id": "bigint",
    "owner_id": "bigint",
    "created_secs": "float8",
    "last_secs": "float8",
    "is_hidden": "boolean",
    "host_cpid": "text",
    "timezone_secs": "integer",
    "ncpus": "integer",
    **dict.fromkeys(("p_fpops", "p_iops", "p_membw"), "float8"),
    **dict.fromkeys(("m_nbytes", "m_cache", "m_swap", "d_total"), "bigint"),
    **dict.fromkeys(_TEXTS, "text"),
}
# A computer that has been here keeps what it reports itself.
_CHANGED: Final = (
    *("owner_id", "host_cpid", "domain_name", "last_contact_at", "retired_at", "client_version", "ncpus", "p_vendor"),
    *("p_model", "p_fpops", "os_name", "os_version"),
)


def _computers(context: Context) -> Translate:
    now = context.now.timestamp()

    def translate(row: Row, tally: Tally) -> Translated:
        if not row["userid"]:
            raise BrokenRow("it has no account")
        if row["owner"] is None:
            raise BrokenRow(UNKNOWN_OWNER)
        created = secs(row["create_time"], now) or FIRST_SECS
        cpid = ascii_text(row, "host_cpid")
        return (
            *(row["id"], row["userid"], created, secs(row["rpc_time"], now), row["total_credit"] == _HIDDEN),
            *(cpid if len(cpid) <= 32 else "", whole(row["timezone"], -86_400, 86_400)),
            whole(row["p_ncpus"], 0, 1 << 20) or 0,
            *(_number(row, name, most) for name, most in _NUMBERS.items()),
            *(line(row, name, tally, most) for name, most in _TEXTS.items()),
        )

    return translate


def _number(row: Row, name: str, most: float) -> float | int | None:
    number = whole(row[name], 1, int(most))
    return number if number is None or isinstance(most, int) else float(number)


COMPUTERS: Final = RowStep(
    "computers",
    Table(
        "host",
        {
            **{"userid": 0, "create_time": 0, "rpc_time": 0, "total_credit": 0, "host_cpid": b"", "timezone": None},
            **{"p_ncpus": 0, **dict.fromkeys(_NUMBERS), **dict.fromkeys(_TEXTS, b"")},
        },
        more={"owner": OWNER.format("userid")},
    ),
    _COLUMNS,
    _computers,
    (
        f"""
INSERT INTO portal_host AS h (id, owner_id, token, former_number, host_cpid, domain_name, given_name, venue,
       created_at, last_contact_at, retired_at, client_version, platform_name, timezone_secs, ncpus, p_vendor, p_model,
       p_features, p_fpops, p_iops, p_membw, m_nbytes, m_cache, m_swap, d_total, os_name, os_version, product_name,
       virtualbox_version, coprocs, hardware_digest, hardware_faults)
SELECT id, owner_id, replace(gen_random_uuid()::text, '-', ''), id, host_cpid, domain_name, '', '',
       to_timestamp(created_secs), to_timestamp(coalesce(last_secs, created_secs)),
       CASE WHEN is_hidden THEN to_timestamp(coalesce(last_secs, created_secs)) END, boinc_client_version, '',
       timezone_secs, ncpus, p_vendor, p_model, p_features, p_fpops, p_iops, p_membw, m_nbytes, m_cache, m_swap,
       d_total, os_name, os_version, product_name, virtualbox_version, '[]', '', '[]'
  FROM moving_rows ORDER BY id
    ON CONFLICT (id) DO UPDATE {updated(_CHANGED, "h")}""",
        """
INSERT INTO accounting_hostledger AS l (host_id, last_at, contacts, level, excluded_types, contact, answer_digest,
       answers_logged, same_answers)
SELECT id, to_timestamp(last_secs), 0, '{0,0,0,0,0}', '{}', '{}', '', 0, 0 FROM moving_rows ORDER BY id
    ON CONFLICT (host_id) DO UPDATE SET last_at = excluded.last_at
 WHERE l.last_at IS DISTINCT FROM excluded.last_at""",
    ),
    (
        refers_to("credit_useropening", "user_id", "owner_id", UNKNOWN_OWNER, shown="id"),
        Check(
            "a computer that was added here has this number",
            """
DELETE FROM moving_rows m USING portal_host h
 WHERE h.id = m.id AND h.former_number IS DISTINCT FROM m.id RETURNING m.id""",
            leaves=True,
        ),
        Check(
            _HERE_SINCE,
            """
DELETE FROM moving_rows m USING accounting_hostledger l WHERE l.host_id = m.id AND l.contacts > 0 RETURNING m.id""",
            leaves=True,
        ),
    ),
)


def _at_projects(context: Context) -> Translate:
    keys, now = project_keys(context.source), context.now.timestamp()

    def translate(row: Row, tally: Tally) -> Translated:
        if row["computer"] is None:
            raise BrokenRow(UNKNOWN_COMPUTER)
        if (key := keys.get(row["project_id"])) is None:
            raise BrokenRow(UNKNOWN_PROJECT)
        reported = amounts.micro(row)
        if reported is None:
            tally.tell("totals are not numbers: counting goes on from the computer's next report", row["host_id"])
        return (
            *(row["host_id"], key, reported, bool(row["active"]), whole(row["project_host_id"], 1, 1 << 62)),
            secs(row["last_rpc"], now) or 0.0,
        )

    return translate


_NOTHING: Final = "'{0,0,0,0,0,0}'"
COMPUTERS_AT_PROJECTS: Final = RowStep(
    "computers at projects",
    Table(
        "su_host_project",
        {
            **{"project_id": 0, "last_rpc": 0, "active": 0, "project_host_id": 0},
            **dict.fromkeys(amounts.KINDS, 0),
        },
        key="host_id",
        more={"computer": "(SELECT h.id FROM host h JOIN user u ON u.id = h.userid WHERE h.id = t.host_id)"},
    ),
    {
        "host_id": "bigint",
        "project_key": "text",
        "reported": "numeric[]",
        "is_listed": "boolean",
        "hostid": "bigint",
        "last_secs": "float8",
    },
    _at_projects,
    (
        f"""
INSERT INTO accounting_hostproject AS p (host_id, project_id, reported, earlier, credited, pending, dropped, listed,
       state, suspended, told_suspended, no_new_work, excluded, no_rsc, update_asked, drop_waiting)
SELECT DISTINCT ON (m.host_id, j.id) m.host_id, j.id, reported, '{{}}', {_NOTHING}, {_NOTHING}, {_NOTHING}, is_listed,
       jsonb_strip_nulls(jsonb_build_object('hostid', hostid, 'at', nullif(last_secs, 0)::bigint)), false, false, false,
       false, '{{}}', false, false
  FROM moving_rows m JOIN accounting_project j ON j.address_key = m.project_key
 ORDER BY m.host_id, j.id, last_secs DESC
    ON CONFLICT (host_id, project_id) DO UPDATE {updated(("reported", "listed", "state"), "p")}""",
    ),
    (
        Check(
            UNKNOWN_COMPUTER,
            """
DELETE FROM moving_rows m
 WHERE NOT EXISTS (SELECT FROM portal_host h WHERE h.id = m.host_id AND h.former_number = h.id) RETURNING host_id""",
            leaves=True,
        ),
        Check(
            _HERE_SINCE,
            """
DELETE FROM moving_rows m USING accounting_hostledger l
 WHERE l.host_id = m.host_id AND l.contacts > 0 RETURNING m.host_id""",
            leaves=True,
        ),
    ),
)


def _opt_outs(context: Context) -> Translate:
    keys = project_keys(context.source)

    def translate(row: Row, _tally: Tally) -> Translated:
        if row["owner"] is None:
            raise BrokenRow(UNKNOWN_OWNER)
        if (key := keys.get(row["project_id"])) is None:
            raise BrokenRow(UNKNOWN_PROJECT)
        if not row["ncomputers"]:
            raise BrokenRow("its owner has no computer: a new one may get the project")
        return row["user_id"], key

    return translate


OPT_OUTS: Final = RowStep(
    "projects opted out of",
    Table(
        "su_account",
        {"project_id": 0},
        key="user_id",
        more={
            "owner": OWNER.format("user_id"),
            "ncomputers": "(SELECT count(*) FROM host h WHERE h.userid = t.user_id)",
        },
        where="t.opt_out <> 0",
    ),
    {"user_id": "bigint", "project_key": "text"},
    _opt_outs,
    (
        f"""
INSERT INTO accounting_hostproject AS p (host_id, project_id, earlier, credited, pending, dropped, listed, state,
       suspended, told_suspended, no_new_work, excluded, no_rsc, update_asked, drop_waiting)
SELECT DISTINCT ON (h.id, j.id) h.id, j.id, '{{}}', {_NOTHING}, {_NOTHING}, {_NOTHING}, false, '{{}}', false, false,
       false, true, '{{}}', false, false
  FROM moving_rows m JOIN accounting_project j ON j.address_key = m.project_key
  JOIN credit_useropening o ON o.user_id = m.user_id
  JOIN portal_host h ON h.owner_id = m.user_id AND h.former_number > 0
  JOIN accounting_hostledger l ON l.host_id = h.id AND l.contacts = 0
 ORDER BY h.id, j.id
    ON CONFLICT (host_id, project_id) DO UPDATE SET excluded = true WHERE NOT p.excluded""",
    ),
)
