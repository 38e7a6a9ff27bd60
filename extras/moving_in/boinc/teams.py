"""Teams, who is in them, and what they had."""

from __future__ import annotations

import html
import re
from typing import Final

from django.db import connection, transaction

from credit.engine.rules import MAX_STATISTIC
from credit.models import Team, TeamType
from credit.models.teams import MAX_TEAM_NAME_CHARS
from extras.moving_in.boinc import balances
from extras.moving_in.boinc.values import line, text
from extras.moving_in.engine.tally import Tally
from extras.moving_in.engine.values import FIRST_SECS, finite, secs
from extras.moving_in.machinery.steps import CallStep, Check, Context, RowStep, Translate, Translated, updated
from extras.moving_in.source import Table

_MAX_DESCRIPTION_CHARS: Final = 2000
_TEAMS: Final = Table(
    "team",
    {
        **balances.READ,
        **{"create_time": 0, "userid": 0, "name": b"", "url": b"", "type": 1},
        **{"description": b"", "country": b"", "joinable": 1},
    },
)
_TWINS: Final = """
SELECT t.id FROM team t JOIN (SELECT lower(name) AS name, min(id) AS first FROM team GROUP BY 1 HAVING count(*) > 1) o
    ON lower(t.name) = o.name AND t.id <> o.first"""
_CHECKS: Final = (
    Check(
        "a team that was founded here has this number",
        """
DELETE FROM moving_rows m USING credit_team t
 WHERE t.id = m.id AND NOT EXISTS (SELECT FROM credit_teamopening o WHERE o.team_id = m.id) RETURNING m.id""",
        leaves=True,
    ),
    Check(
        "another team here has its name: its number was added",
        f"""
UPDATE moving_rows m SET name = left(m.name, {MAX_TEAM_NAME_CHARS - 13}) || ' (' || m.id || ')'
 WHERE EXISTS (SELECT FROM moving_rows o WHERE lower(o.name) = lower(m.name) AND o.id < m.id)
    OR EXISTS (SELECT FROM credit_team t WHERE lower(t.name) = lower(m.name) AND t.id <> m.id) RETURNING m.id""",
    ),
)
_MERGE: Final = (
    f"""
INSERT INTO credit_team AS o (id, name, type, url, description, country, founder_id, created_at, former_credit)
SELECT m.id, m.name, m.type, m.url, m.description, m.country, u.id, to_timestamp(m.created_secs), 0
  FROM moving_rows m LEFT JOIN credit_useropening p ON p.user_id = m.founder_id
  LEFT JOIN portal_user u ON u.id = p.user_id AND u.is_active
 ORDER BY m.id
    ON CONFLICT (id) DO UPDATE {updated(("name", "type", "url", "description", "country", "founder_id"))}""",
    balances.opening("team"),
)
_TAG: Final = re.compile(r"<(/?[A-Za-z][^<>]{0,500})>")
_BREAK: Final = re.compile(r"<\s*(?:br|/p|/div|/li|/tr|/h[1-6])\b[^<>]{0,500}>", re.I)
_ADDRESS: Final = re.compile(r"https?://[^\s<>\"]{3,190}")


def _translator(context: Context) -> Translate:
    now = context.now.timestamp()
    twins = {number for (number,) in context.source.all(_TWINS)}

    def translate(row: dict[str, object], tally: Tally) -> Translated:
        name = line(row, "name", tally, MAX_TEAM_NAME_CHARS)
        if not name:
            tally.tell("no name", row["id"])
            name = f"({row['id']})"
        elif row["id"] in twins:
            tally.tell("its name differs from another team's only by case: its number was added", f"{row['id']} {name}")
            name = f"{name[: MAX_TEAM_NAME_CHARS - 13]} ({row['id']})"
        if not row["joinable"]:
            tally.tell("takes no new members: not supported here", row["id"])
        number = row["type"]
        known = isinstance(number, int) and number in TeamType.values
        return (
            *(row["id"], secs(row["create_time"], now) or FIRST_SECS, row["userid"], name),
            *(number if known else TeamType.UNKNOWN.value, _address(line(row, "url", tally, 190))),
            *(_plain(text(row, "description", tally, 100_000), tally, row["id"]), line(row, "country", tally, 60)),
            *balances.values(row, tally, now),
        )

    return translate


def _address(stored: str) -> str:
    """With its scheme, which old rows lack; empty if it is no address."""
    if not stored or stored in ("http://", "https://"):
        return ""
    address = stored if "://" in stored else f"http://{stored}"
    return address if _ADDRESS.fullmatch(address) else ""


def _plain(stored: str, tally: Tally, number: object) -> str:
    """Without HTML, which pages here show as text, and no longer than founders may write."""
    plain = html.unescape(_TAG.sub("", _BREAK.sub("\n", stored))) if "<" in stored or "&" in stored else stored
    plain = plain.strip()
    if len(plain) > _MAX_DESCRIPTION_CHARS:
        tally.tell(f"description: longer than {_MAX_DESCRIPTION_CHARS} characters, cut", number)
    return plain[:_MAX_DESCRIPTION_CHARS].rstrip()


TEAMS: Final = RowStep(
    "teams",
    _TEAMS,
    {
        **{"id": "bigint", "created_secs": "float8", "founder_id": "bigint", "name": "text", "type": "smallint"},
        **{"url": "text", "description": "text", "country": "text"},
        **balances.COLUMNS,
    },
    _translator,
    _MERGE,
    _CHECKS,
)

_JOINED: Final = """(SELECT d.{0} FROM team_delta d WHERE d.teamid = t.teamid AND d.userid = t.id AND d.joining = 1
                      ORDER BY d.timestamp DESC LIMIT 1)"""
_MEMBERS: Final = Table(
    "user",
    {"teamid": 0, "total_credit": 0.0},
    more={"joined": _JOINED.format("timestamp"), "before": _JOINED.format("total_credit"), "team": "g.id"},
    join="LEFT JOIN team g ON g.id = t.teamid",
)


def _member_translator(context: Context) -> Translate:
    now = context.now.timestamp()

    def translate(row: dict[str, object], tally: Tally) -> Translated:
        if row["teamid"] and row["team"] is None:
            tally.leave("its team no longer exists", row["id"])
            return None
        total = finite(row["total_credit"], 0, MAX_STATISTIC / 10) or 0.0
        # Who joined before there were such rows brought nothing, as far as anybody knows.
        before = min(finite(row["before"], 0, MAX_STATISTIC / 10) or 0.0, total)
        return row["id"], row["teamid"] or None, secs(row["joined"], now) or FIRST_SECS, before

    return translate


MEMBERS: Final = RowStep(
    "members of teams",
    _MEMBERS,
    {"id": "bigint", "team_id": "bigint", "joined_secs": "float8", "credit_before": "float8"},
    _member_translator,
    (
        """
INSERT INTO credit_membership AS s (user_id, team_id, joined_at, credit_before)
SELECT m.id, m.team_id, to_timestamp(m.joined_secs), m.credit_before
  FROM moving_rows m JOIN credit_useropening o ON o.user_id = m.id JOIN credit_teamopening t ON t.team_id = m.team_id
 ORDER BY m.id
    ON CONFLICT (user_id) DO UPDATE
   SET team_id = excluded.team_id, joined_at = excluded.joined_at, credit_before = excluded.credit_before
 WHERE s.team_id <> excluded.team_id""",
        """
DELETE FROM credit_membership s USING moving_rows m
 WHERE m.id = s.user_id AND m.team_id IS NULL AND EXISTS (SELECT FROM credit_useropening o WHERE o.user_id = m.id)""",
    ),
)

# What members had in excess of their team's total is taken to be from before they joined.
_SCALE: Final = """
  WITH sums AS (
SELECT s.team_id, sum(greatest(o.total_credit - s.credit_before, 0)) AS in_team
  FROM credit_membership s JOIN credit_useropening o ON o.user_id = s.user_id GROUP BY 1)
UPDATE credit_membership s
   SET credit_before = o.total_credit - greatest(o.total_credit - s.credit_before, 0) * t.total_credit / sums.in_team
  FROM sums, credit_teamopening t, credit_useropening o
 WHERE sums.team_id = s.team_id AND t.team_id = s.team_id AND o.user_id = s.user_id
   AND sums.in_team > t.total_credit * (1 + 1e-9)"""
# Never less: who left here since left some.
_FORMER: Final = """
  WITH sums AS (
SELECT t.team_id, greatest(t.total_credit - coalesce(sum(greatest(o.total_credit - s.credit_before, 0)), 0), 0) AS rest
  FROM credit_teamopening t
  LEFT JOIN credit_membership s ON s.team_id = t.team_id LEFT JOIN credit_useropening o ON o.user_id = s.user_id
 GROUP BY t.team_id, t.total_credit)
UPDATE credit_team t SET former_credit = sums.rest
  FROM sums WHERE sums.team_id = t.id AND sums.rest > t.former_credit * (1 + 1e-9) + 1e-6"""


def _sum_up(context: Context, tally: Tally) -> None:
    """Let each team have in all what it had: members' parts, and the rest as former members'."""
    if not context.writes:
        return
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_SCALE)
        cursor.execute(_FORMER)
        tally.nchanged = cursor.rowcount
    tally.nread = tally.ntaken = Team.objects.count()


TEAM_SUMS: Final = CallStep("sums of teams", _sum_up)
