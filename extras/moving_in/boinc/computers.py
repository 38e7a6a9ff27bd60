"""Computers: with the same numbers, and what the scheduler knows of them."""

from __future__ import annotations

import re
from typing import Final

import orjson

from extras.moving_in.boinc import balances
from extras.moving_in.boinc.values import ascii_text, line, text
from extras.moving_in.engine.computers import equipment
from extras.moving_in.engine.tally import Tally
from extras.moving_in.engine.values import FIRST_SECS, BrokenRow, finite, secs, whole
from extras.moving_in.machinery.steps import Check, Context, RowStep, Translate, Translated, refers_to, updated
from extras.moving_in.source import Row, Table
from portal.models import Venue

_NUMBERS: Final = (
    *("create_time", "userid", "rpc_seqno", "rpc_time", "timezone", "p_ncpus", "max_results_day"),
    *("on_frac", "connected_frac", "active_frac", "gpu_active_frac", "duration_correction_factor"),
    *("p_fpops", "p_iops", "p_membw", "m_nbytes", "m_cache", "m_swap", "d_total"),
)
_TEXTS: Final = (
    *("domain_name", "serialnum", "p_vendor", "p_model", "os_name", "os_version", "venue", "host_cpid"),
    *("product_name", "misc"),
)
_TABLE: Final = Table(
    "host",
    {**balances.READ, **dict.fromkeys(_NUMBERS, 0), **dict.fromkeys(_TEXTS, b"")},
    more={"owner": "u.id"},
    join="LEFT JOIN user u ON u.id = t.userid",
    where="t.userid <> 0",
)
_COLUMNS: Final = {
    "id": "bigint",
    "owner_id": "bigint",
    "created_secs": "float8",
    "contact_secs": "float8",
    "published_cpid": "text",
    "venue": "text",
    "domain_name": "text",
    "timezone_secs": "integer",
    "ncpus": "integer",
    "p_vendor": "text",
    "p_model": "text",
    "p_features": "text",
    "p_fpops": "float8",
    "p_iops": "float8",
    "p_membw": "float8",
    "m_nbytes": "bigint",
    "m_cache": "bigint",
    "m_swap": "bigint",
    "d_total": "bigint",
    "os_name": "text",
    "os_version": "text",
    "product_name": "text",
    "client_version": "text",
    "client_brand": "text",
    "virtualbox_version": "text",
    "docker_version": "text",
    "coprocs": "jsonb",
    "rpc_seqno": "bigint",
    "on_frac": "float8",
    "active_frac": "float8",
    "gpu_active_frac": "float8",
    "connected_frac": "float8",
    "duration_correction_factor": "float8",
    "is_blocked": "boolean",
    **balances.COLUMNS,
}
BLOCKED: Final = "an operator blocked it before the project moved here; write to them if it is all right"
"""The reason given to the owner, as BOINC's server keeps none."""
_IS_BLOCKED: Final = -1
_OLD_QUOTA: Final = 1
_HARDWARE: Final = (
    *("venue", "domain_name", "timezone_secs", "ncpus", "p_vendor", "p_model", "p_features", "p_fpops", "p_iops"),
    *("p_membw", "m_nbytes", "m_cache", "m_swap", "d_total", "os_name", "os_version", "product_name"),
    *("client_version", "client_brand", "virtualbox_version", "docker_version", "coprocs", "published_cpid"),
)
_RECORD: Final = (
    *("rpc_seqno", "on_frac", "active_frac", "gpu_active_frac", "connected_frac", "duration_correction_factor"),
)
_CHECKS: Final = (
    Check(
        "a computer that was attached here has this number",
        """
DELETE FROM moving_rows m USING portal_host h
 WHERE h.id = m.id AND NOT EXISTS (SELECT FROM credit_hostopening o WHERE o.host_id = m.id) RETURNING m.id""",
        leaves=True,
    ),
    refers_to("credit_useropening", "user_id", "owner_id", "its owner was not taken", shown="id"),
    Check(
        "it has another owner here: this is left as it is",
        """
DELETE FROM moving_rows m USING portal_host h WHERE h.id = m.id AND h.owner_id <> m.owner_id RETURNING m.id""",
        leaves=True,
    ),
)


# What its client told this site since is newer: from then on the record has a CPID of its own.
_MERGE: Final = (
    f"""
INSERT INTO portal_host AS h (id, owner_id, token, host_cpid, given_name, platform_name, created_at, last_contact_at,
       hardware_digest, hardware_faults, {", ".join(_HARDWARE)})
SELECT id, owner_id, replace(gen_random_uuid()::text, '-', ''), '', '', '', to_timestamp(created_secs),
       to_timestamp(contact_secs), '', '[]', {", ".join(_HARDWARE)}
  FROM moving_rows ORDER BY id
    ON CONFLICT (id) DO UPDATE {updated((*_HARDWARE, "last_contact_at"), "h")} AND h.host_cpid = ''""",
    f"""
INSERT INTO scheduler_hostrecord AS s (host_id, repeated_times, last_rpc_at, statistics, hardware_digest, last_messages,
       jobs_of_day, {", ".join(_RECORD)})
SELECT id, 0, to_timestamp(contact_secs), '{{}}', '', '[]', '[]', {", ".join(_RECORD)}
  FROM moving_rows ORDER BY id
    ON CONFLICT (host_id) DO UPDATE {updated((*_RECORD, "last_rpc_at"), "s")} AND s.rpc_seqno < excluded.rpc_seqno""",
    # Blocks made here are left alone. Where computers were merged, a block that came with either of them stays.
    f"""
DELETE FROM scheduler_workblock b USING moving_rows m
 WHERE b.host_id = m.id AND NOT m.is_blocked AND b.reason = '{BLOCKED}'
   AND NOT EXISTS (SELECT FROM portal_host h WHERE h.merged_into_id = m.id)""",
    f"""
INSERT INTO scheduler_workblock (host_id, reason, created_at)
SELECT DISTINCT coalesce(h.merged_into_id, h.id), '{BLOCKED}', %(now)s
  FROM moving_rows m JOIN portal_host h ON h.id = m.id WHERE m.is_blocked ORDER BY 1
    ON CONFLICT DO NOTHING""",
    *balances.statements("host"),
)
_MODEL: Final = re.compile(r"^(.*?)\s*\[([a-z0-9_ .]{8,})\]\s*$", re.S)
"""Old clients put the processor's features where newer ones have its family."""


def _translator(context: Context) -> Translate:
    now = context.now.timestamp()

    def translate(row: Row, tally: Tally) -> Translated:
        number = row["id"]
        if row["owner"] is None:
            raise BrokenRow("its owner no longer exists")
        if row["max_results_day"] == _OLD_QUOTA:
            tally.tell("max_results_day is 1, which BOINC has not read since 2010: taken as not blocked", number)
        created = secs(row["create_time"], now) or FIRST_SECS
        contact = secs(row["rpc_time"], now) or created
        equipped = equipment(text(row, "serialnum", tally, 2000), text(row, "misc", tally, 20_000))
        p_model, p_features = _model(line(row, "p_model", tally, 256))
        factor = finite(row["duration_correction_factor"], 1e-6, 1e6)
        return (
            *(number, row["userid"], created, contact, ascii_text(row, "host_cpid")[:32], _venue(row, tally)),
            line(row, "domain_name", tally, 254),
            *(whole(row["timezone"], -86_400, 86_400), whole(row["p_ncpus"], 0, 100_000) or 0),
            *(line(row, "p_vendor", tally, 128), p_model, p_features),
            *(finite(row[name], 1, 1e18) for name in ("p_fpops", "p_iops", "p_membw")),
            *(whole(row[name], 1, 2**62) for name in ("m_nbytes", "m_cache", "m_swap", "d_total")),
            *(line(row, "os_name", tally, 128), line(row, "os_version", tally, 256)),
            *(line(row, "product_name", tally, 256), equipped.client_version, equipped.client_brand),
            *(equipped.virtualbox_version, equipped.docker_version, orjson.dumps(equipped.coprocs).decode()),
            whole(row["rpc_seqno"], 0, 2**40) or 0,
            *(_fraction(row[name], 1.0) for name in ("on_frac", "active_frac", "gpu_active_frac")),
            *(_fraction(row["connected_frac"], None), 1.0 if factor is None else factor),
            row["max_results_day"] == _IS_BLOCKED,
            *balances.values(row, tally, now),
        )

    return translate


def _model(stored: str) -> tuple[str, str]:
    found = _MODEL.match(stored)
    return (found[1], found[2]) if found else (stored, "")


def _venue(row: Row, tally: Tally) -> str:
    venue = ascii_text(row, "venue")
    if venue not in Venue.values:
        tally.tell("an unknown venue", f"{row['id']} {venue}")
        return ""
    return venue


def _fraction(value: object, unknown: float | None) -> float | None:
    """-1 is unknown; so is 0, which is what a row begins with."""
    found = finite(value, 1e-9, 1)
    return unknown if found is None else found


COMPUTERS: Final = RowStep("computers", _TABLE, _COLUMNS, _translator, _MERGE, _CHECKS)

_ZOMBIES: Final = Table("host", {"create_time": 0, "rpc_seqno": 0}, where="t.userid = 0")


def _zombie_translator(context: Context) -> Translate:
    now = context.now.timestamp()

    def translate(row: Row, tally: Tally) -> Translated:
        if not 0 < row["rpc_seqno"] != row["id"]:
            tally.leave("deleted, but not merged into another", row["id"])
            return None
        return row["id"], row["rpc_seqno"], secs(row["create_time"], now) or FIRST_SECS

    return translate


ZOMBIES: Final = RowStep(
    "merged computers",
    _ZOMBIES,
    {"id": "bigint", "into_id": "bigint", "created_secs": "float8"},
    _zombie_translator,
    (
        # Where it was merged into a computer that was merged itself, this one's row was or will be made by this
        # statement, too: they are put right afterwards.
        """
INSERT INTO moving_in_mergedhost AS z (id, into_id, created_at)
SELECT id, into_id, to_timestamp(created_secs) FROM moving_rows ORDER BY id
    ON CONFLICT (id) DO UPDATE SET into_id = excluded.into_id WHERE z.into_id <> excluded.into_id""",
    ),
)


FOLLOW_MERGES: Final = """
  WITH RECURSIVE ends AS (
SELECT z.id, z.into_id, z.created_at, 1 AS steps FROM moving_in_mergedhost z
 UNION ALL
SELECT e.id, z.into_id, e.created_at, e.steps + 1
  FROM ends e JOIN moving_in_mergedhost z ON z.id = e.into_id WHERE e.steps < 100),
       found AS (
SELECT e.id, coalesce(h.merged_into_id, h.id) AS into_id, h.owner_id, e.created_at
  FROM ends e JOIN portal_host h ON h.id = e.into_id JOIN credit_hostopening o ON o.host_id = h.id
 WHERE e.id <> h.id)
INSERT INTO portal_host AS h (id, owner_id, token, host_cpid, given_name, domain_name, created_at, last_contact_at,
       hardware_digest, hardware_faults, merged_into_id, venue, ncpus, p_vendor, p_model, p_features, os_name,
       os_version, product_name, client_version, platform_name, virtualbox_version, coprocs)
SELECT id, owner_id, replace(gen_random_uuid()::text, '-', ''), '', '', '', created_at, created_at, '', '[]', into_id,
       '', 0, '', '', '', '', '', '', '', '', '', '[]'
  FROM found ORDER BY id
    ON CONFLICT (id) DO UPDATE SET merged_into_id = excluded.merged_into_id
 WHERE h.merged_into_id IS DISTINCT FROM excluded.merged_into_id AND h.owner_id = excluded.owner_id
"""
