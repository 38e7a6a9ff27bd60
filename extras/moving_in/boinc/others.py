"""Consents, what is deleted, figures by app, numbers that come next; and counts of what is not supported here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from django.db import connection, transaction

from credit.engine.rules import MAX_STATISTIC
from credit.export.consent import STATISTICS
from extras.moving_in.boinc.balances import COLUMNS
from extras.moving_in.boinc.computers import FOLLOW_MERGES
from extras.moving_in.boinc.values import ascii_text
from extras.moving_in.engine.tally import Tally
from extras.moving_in.engine.values import BrokenRow, finite, secs
from extras.moving_in.machinery.steps import (
    CallStep,
    Check,
    Context,
    RowStep,
    Translate,
    Translated,
    refers_to,
    updated,
)
from extras.moving_in.source import Row, Table
from portal.models import ConsentEvent

_CONSENTS: Final = Table(
    "consent",
    {"userid": 0, "consent_time": 0, "consent_flag": 0},
    more={"kind": "y.shortname", "owner": "u.id"},
    join="LEFT JOIN consent_type y ON y.id = t.consent_type_id LEFT JOIN user u ON u.id = t.userid",
)
_MERGE_CONSENTS: Final = (
    f"""
INSERT INTO portal_consentevent (user_id, kind, is_given, at, language, origin)
SELECT m.user_id, '{STATISTICS.key}', m.is_given, to_timestamp(m.at_secs), '', '{ConsentEvent.Origin.EARLIER.value}'
  FROM moving_rows m JOIN credit_useropening o ON o.user_id = m.user_id
 WHERE m.kind = 'STATSEXPORT'
   AND NOT EXISTS (SELECT FROM portal_consentevent e
                    WHERE e.user_id = m.user_id AND e.kind = '{STATISTICS.key}' AND e.at = to_timestamp(m.at_secs)
                      AND e.is_given = m.is_given)
 ORDER BY m.at_secs, m.id""",
    # Only who was asked; events have the order of their numbers at the same time.
    f"""
UPDATE credit_exportconsent c SET exports_statistics = e.is_given, changed_at = e.at
  FROM (SELECT DISTINCT ON (v.user_id) v.user_id, v.is_given, v.at
          FROM portal_consentevent v JOIN moving_rows m ON m.user_id = v.user_id AND m.kind = 'STATSEXPORT'
         WHERE v.kind = '{STATISTICS.key}' AND m.is_asked ORDER BY v.user_id, v.at DESC, v.id DESC) e
 WHERE c.user_id = e.user_id AND (c.exports_statistics, c.changed_at) IS DISTINCT FROM (e.is_given, e.at)""",
    """
UPDATE portal_user u SET terms_accepted_at = m.at
  FROM (SELECT user_id, max(to_timestamp(at_secs)) AS at
          FROM moving_rows WHERE kind = 'ENROLL' AND is_given GROUP BY 1) m
 WHERE u.id = m.user_id AND (u.terms_accepted_at IS NULL OR u.terms_accepted_at < m.at)
   AND EXISTS (SELECT FROM credit_useropening o WHERE o.user_id = u.id)""",
)


def statistics_need_consent(context: Context) -> bool:
    """Whether the project asked people; else it exported all."""
    if not context.source.has("consent_type"):
        return False
    return bool(context.source.all("SELECT 1 FROM consent_type WHERE shortname = 'STATSEXPORT' AND enabled = 1"))


def _consent_translator(context: Context) -> Translate:
    now, is_asked = context.now.timestamp(), statistics_need_consent(context)

    def translate(row: Row, tally: Tally) -> Translated:
        kind, at = ascii_text(row, "kind"), secs(row["consent_time"], now)
        if row["owner"] is None:
            raise BrokenRow("its account does not exist")
        if at is None:
            raise BrokenRow("its time is impossible")
        if kind not in ("ENROLL", "STATSEXPORT"):
            tally.leave(f"an unsupported kind of consent: {kind or 'unknown'}"[:100], row["id"])
            return None
        return row["id"], row["userid"], kind, bool(row["consent_flag"]), at, is_asked

    return translate


CONSENTS: Final = RowStep(
    "consents",
    _CONSENTS,
    {
        **{"id": "bigint", "user_id": "bigint", "kind": "text", "is_given": "boolean", "at_secs": "float8"},
        "is_asked": "boolean",
    },
    _consent_translator,
    _MERGE_CONSENTS,
    (refers_to("credit_useropening", "user_id", "user_id", "its account was not taken", shown="id"),),
)

_GONE: Final = """
INSERT INTO credit_gone{0} ({0}_id, cpid, gone_at)
SELECT id, cpid, to_timestamp(at_secs) FROM moving_rows ORDER BY id
    ON CONFLICT ({0}_id) DO NOTHING"""


def _gone(kind: str, name: str, what: str) -> RowStep:
    key = f"{kind}id"

    def translator(context: Context) -> Translate:
        now = context.now.timestamp()

        def translate(row: Row, tally: Tally) -> Translated:
            at, cpid = secs(row["create_time"], now), ascii_text(row, "public_cross_project_id")
            if at is None or not cpid:
                raise BrokenRow("without a time or an id")
            return row[key], cpid[:32], at

        return translate

    table = Table(f"{kind}_deleted", {"public_cross_project_id": b"", "create_time": 0.0}, key=key)
    check = Check(
        f"deleted there since it was imported: delete {what} here",
        f"SELECT m.id FROM moving_rows m JOIN credit_{kind}opening o ON o.{kind}_id = m.id",
    )
    columns = {"id": "bigint", "cpid": "text", "at_secs": "float8"}
    return RowStep(name, table, columns, translator, (_GONE.format(kind),), (check,))


GONE_PEOPLE: Final = _gone("user", "deleted people", "the account")
GONE_COMPUTERS: Final = _gone("host", "deleted computers", "the computer")

# Its owner merged it there since it was imported: what it had is a part of the other one's balance.
_TAKE_OVER: Final = """
  WITH gone AS (
DELETE FROM credit_hostopening o USING moving_in_mergedhost z WHERE o.host_id = z.id
RETURNING o.host_id, o.total_credit)
UPDATE credit_hostcredit c
   SET total_credit = greatest(c.total_credit - g.total_credit, 0), expavg_credit = 0
  FROM gone g WHERE c.host_id = g.host_id"""


def _follow_merges(context: Context, tally: Tally) -> None:
    """Let the number of a merged computer lead to the one that its client goes on as."""
    if not context.writes:
        return
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_TAKE_OVER)
        cursor.execute(FOLLOW_MERGES)
        tally.nchanged = cursor.rowcount
        cursor.execute(
            "SELECT z.id FROM moving_in_mergedhost z WHERE NOT EXISTS (SELECT FROM portal_host h WHERE h.id = z.id)"
        )
        for (number,) in cursor:
            tally.leave("merged into a computer that no longer exists", number)
        cursor.execute("SELECT count(*) FROM moving_in_mergedhost")
        ((tally.nread,),) = cursor.fetchall()
    tally.ntaken = tally.nread - tally.nleft


MERGES: Final = CallStep("numbers of merged computers", _follow_merges)

_BY_APP: Final = Table(
    "credit_user",
    {"appid": 0, "njobs": 0, "total": 0.0, "expavg": 0.0, "expavg_time": 0.0, "credit_type": 0},
    key="userid",
)


def _by_app_translator(context: Context) -> Translate:
    now = context.now.timestamp()

    def translate(row: Row, tally: Tally) -> Translated:
        total = finite(row["total"], 0, MAX_STATISTIC / 10)
        at = secs(row["expavg_time"], now)
        if total is None:
            raise BrokenRow("credit is negative or too large")
        average = finite(row["expavg"], 1e-40, MAX_STATISTIC / 10) if at is not None else None
        return row["userid"], row["appid"], max(row["njobs"], 0), total, average or 0.0, at

    return translate


BY_APP: Final = RowStep(
    "credit by app",
    _BY_APP,
    {"user_id": "bigint", "app_id": "bigint", "njobs": "bigint", **COLUMNS},
    _by_app_translator,
    (
        f"""
INSERT INTO credit_appopening AS o (user_id, app_id, njobs, total_credit, expavg_credit, expavg_at)
SELECT m.user_id, m.app_id, sum(m.njobs), sum(m.total_credit), sum(m.expavg_credit), to_timestamp(max(m.expavg_secs))
  FROM moving_rows m JOIN credit_useropening u ON u.user_id = m.user_id JOIN credit_app a ON a.id = m.app_id
 GROUP BY 1, 2 ORDER BY 1, 2
    ON CONFLICT (user_id, app_id) DO UPDATE {updated(("njobs", "total_credit", "expavg_credit", "expavg_at"))}""",
    ),
    (
        refers_to("credit_useropening", "user_id", "user_id", "its account is missing here"),
        refers_to("credit_app", "id", "app_id", "its app is missing here", shown="user_id"),
    ),
)

_HIGHEST: Final = "SELECT greatest((SELECT max(id) FROM {}), (SELECT max(id) FROM {}))"
NUMBERED: Final = {
    "portal_user": ("SELECT max(user_id) FROM credit_useropening", 100_000),
    "portal_host": ("SELECT max(host_id) FROM credit_hostopening", 1_000_000),
    "credit_team": ("SELECT max(team_id) FROM credit_teamopening", 10_000),
    "credit_platform": ("SELECT max(id) FROM credit_platform", 100),
    "credit_app": ("SELECT max(id) FROM credit_app", 100),
    "credit_appversion": ("SELECT max(id) FROM credit_appversion", 1_000),
    "credit_batch": ("SELECT max(id) FROM credit_batch", 100_000),
    "credit_workunit": (_HIGHEST.format("credit_workunit", "scheduler_archivedworkunit"), 10_000_000),
    "credit_result": (_HIGHEST.format("credit_result", "scheduler_archivedtask"), 50_000_000),
}
"""Tables whose rows keep their numbers: the highest that was brought, and how many above it are left to the old site,
which goes on until it is closed."""
_RAISE: Final = """
SELECT setval(sequence, top + {room})
  FROM (SELECT pg_get_serial_sequence('{table}', 'id')::regclass AS sequence, ({highest}) AS top) s
 WHERE top + {room} / 2 > coalesce(pg_sequence_last_value(sequence), 0)"""


def sequences(numbered: Mapping[str, tuple[str, int]]) -> CallStep:
    """Let new rows begin above the numbers that were brought."""

    def raise_(context: Context, tally: Tally) -> None:
        if not context.writes:
            return
        with connection.cursor() as cursor:
            for table, (highest, room) in numbered.items():
                cursor.execute(_RAISE.format(table=table, highest=highest, room=room))
                tally.nchanged += cursor.rowcount

    return CallStep("numbers that come next", raise_)


SEQUENCES: Final = sequences(NUMBERED)

_UNSUPPORTED: Final = {
    "profile": "profiles of volunteers",
    "thread": "threads of the forum",
    "post": "posts of the forum",
    "private_messages": "private messages",
    "friend": "friends",
    "badge_team": "badges of teams",
    "team_admin": "administrators of teams beside the founder",
    "donation_paypal": "donations",
    "credit_team": "credit of teams by app",
}


def _count_unsupported(context: Context, tally: Tally) -> None:
    """Count what this site does not support."""
    for table, what in _UNSUPPORTED.items():
        if context.source.has(table):
            ((count,),) = context.source.all(f"SELECT count(*) FROM `{table}`")
            tally.nread += count
            if count:
                tally.leave(f"{what}: not supported here", table, count)


UNSUPPORTED: Final = CallStep("not supported here", _count_unsupported)
