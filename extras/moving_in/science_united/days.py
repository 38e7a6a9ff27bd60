"""What Science United noted by period: of each volunteer and of each project, but not of both, nor of computers.

A period is a day as a rule: from one run of its accounts to the next. Its day is that of its middle, in UTC. A
volunteer's may span idle days; then its work is booked on the last of them, and marked. What a volunteer did is kept as
the work of a record of their own, "before the move", at what stands for the projects. What was done at a project counts
in the project's days.
"""

from __future__ import annotations

import datetime as dt
from typing import Final

from accounting.engine.amounts import KINDS, MICRO
from accounting.engine.states import DayFlag
from accounting.ledger.partitions import create_months
from accounting.ledger.rollup import roll_up
from accounting.models import ProjectDay
from extras.moving_in.engine import amounts
from extras.moving_in.engine.tally import Tally
from extras.moving_in.engine.values import FIRST_SECS, BrokenRow, finite, secs
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
from extras.moving_in.science_united.computers import UNKNOWN_PROJECT
from extras.moving_in.science_united.people import OWNER, UNKNOWN_OWNER
from extras.moving_in.science_united.projects import BEFORE_MOVE, project_keys
from extras.moving_in.source import Row, Source, Table

RECORD: Final = -1
"""The former number of the record that stands for a volunteer's computers before the move; no client sends it."""
_DAY_SECS: Final = 86_400
_SPANS_SECS: Final = 36 * 3600
"""Longer periods are more than one run of the accounts."""
_DELTAS: Final = {f"d_{kind}": "bigint" for kind in KINDS}
_TOTALS: Final = {f"t_{kind}": "bigint" for kind in KINDS}
_SOURCE: Final = {"create_time": 0.0, **{f"{k}_{part}": 0 for part in ("delta", "total") for k in amounts.KINDS}}
_SUMS: Final = ", ".join(f"sum({kind})::bigint AS {kind}" for kind in KINDS)
_KINDS: Final = ", ".join(KINDS)
_OF_DAY: Final = ", ".join(f"d.{kind}" for kind in KINDS)


def _days(owner: str) -> str:
    """A query named ``days``: the days of each owner. What was before the first period is booked on its first day."""
    deltas = ", ".join(f"d_{kind} AS {kind}" for kind in KINDS)
    totals = ", ".join(f"t_{kind}" for kind in KINDS)
    return f"""
WITH periods AS (
SELECT m.*, greatest(begin_secs, coalesce(lead(begin_secs) OVER w, last_secs, begin_secs)) AS end_secs,
       row_number() OVER w AS place
  FROM moving_rows m WINDOW w AS (PARTITION BY {owner} ORDER BY id)),
parts AS (
SELECT {owner},
       (to_timestamp(end_secs - least(end_secs - begin_secs, {_DAY_SECS}) / 2) AT TIME ZONE 'UTC')::date AS day,
       CASE WHEN end_secs - begin_secs > {_SPANS_SECS} THEN {DayFlag.SPANS_DAYS.value} ELSE 0 END AS flags, {deltas}
  FROM periods
 UNION ALL
SELECT {owner}, (to_timestamp(begin_secs) AT TIME ZONE 'UTC')::date, {DayFlag.SPANS_DAYS.value}, {totals}
  FROM periods WHERE place = 1 AND {totals.replace(",", " +")} > 0),
days AS MATERIALIZED (
SELECT {owner}, day, bit_or(flags)::smallint AS flags, {_SUMS} FROM parts GROUP BY {owner}, day
HAVING {" + ".join(f"sum({kind})" for kind in KINDS)} > 0)"""


def _row(row: Row, tally: Tally, now: float, owner: int) -> tuple[float, tuple[int, ...], tuple[int, ...]]:
    deltas, totals = amounts.micro(row, "_delta"), amounts.micro(row, "_total")
    if deltas is None or totals is None:
        tally.tell("amounts are not numbers: counted as 0", f"{owner}: row {row['id']}")
    nothing = (0,) * len(KINDS)
    begin = secs(row["create_time"], now) or FIRST_SECS
    return begin, tuple(deltas or nothing), tuple(totals or nothing)


def _of_people(context: Context) -> Translate:
    now = context.now.timestamp()
    last = {user: at for user, at in context.source.all("SELECT userid, max(rpc_time) FROM host GROUP BY userid")}

    def translate(row: Row, tally: Tally) -> Translated:
        if row["owner"] is None:
            raise BrokenRow(UNKNOWN_OWNER)
        begin, deltas, totals = _row(row, tally, now, row["user_id"])
        return row["user_id"], row["id"], begin, secs(last.get(row["user_id"]), now), *deltas, *totals

    return translate


def _of_projects(context: Context) -> Translate:
    now, keys = context.now.timestamp(), project_keys(context.source)
    ((last,),) = context.source.all("SELECT max(rpc_time) FROM host")

    def translate(row: Row, tally: Tally) -> Translated:
        if (key := keys.get(row["project_id"])) is None:
            raise BrokenRow(UNKNOWN_PROJECT)
        begin, deltas, totals = _row(row, tally, now, row["project_id"])
        return row["project_id"], row["id"], key, begin, secs(last, now), *deltas, *totals

    return translate


def _bounds(source: Source) -> tuple[dt.date, dt.date] | None:
    """The first and the last day that can have work."""
    found = [
        at
        for table in ("su_accounting_user", "su_accounting_project")
        if source.has(table)
        for at in source.all(
            f"SELECT min(create_time), max(create_time) FROM {table} WHERE create_time > %s", FIRST_SECS
        )[0]
        if at is not None
    ]
    if not found:
        return None
    return dt.datetime.fromtimestamp(min(found), dt.UTC).date(), dt.datetime.fromtimestamp(max(found), dt.UTC).date()


def _make_months(context: Context, _tally: Tally) -> None:
    bounds = _bounds(context.source)
    if bounds is not None and context.writes:
        first = dt.date(2000, 1, 1) if _has_broken_times(context.source) else bounds[0]
        create_months(first, max(bounds[1], context.now.date()))


def _has_broken_times(source: Source) -> bool:
    return bool(source.all("SELECT 1 FROM su_accounting_user WHERE create_time <= %s LIMIT 1", FIRST_SECS))


def _sum_up(context: Context, tally: Tally) -> None:
    """Add the days up, and compare the sums that Science United kept: of people, of projects, of all."""
    bounds = _bounds(context.source)
    if bounds is None:
        return
    if context.writes:
        first = dt.date(2000, 1, 1) if _has_broken_times(context.source) else bounds[0]
        # A day that work was moved from at a later import would stay.
        ProjectDay.objects.filter(day__gte=first).delete()
        roll_up(context.now, first)
    sums = {table: sum_ for table, owner in _SUMMED.items() if (sum_ := _last_sum(context.source, table, owner))}
    least, most = min(sums.values(), default=0.0), max(sums.values(), default=0.0)
    if most - least > max(1.0, most / 1e6):
        words = ", ".join(f"{table}: {sum_:.0f}" for table, sum_ in sums.items())
        tally.tell("its own sums differ, and so will the days here (credits)", words)


_SUMMED: Final = {"su_accounting_user": "user_id", "su_accounting_project": "project_id", "su_accounting": "id * 0"}


def _last_sum(source: Source, table: str, owner: str) -> float:
    statement = f"""
SELECT sum(cpu_ec_delta + cpu_ec_total + gpu_ec_delta + gpu_ec_total) FROM {table}
 WHERE id IN (SELECT max(id) FROM {table} GROUP BY {owner})"""
    if not source.has(table):
        return 0.0
    return finite(source.all(statement)[0][0], 0, 1e18) or 0.0


MONTHS: Final = CallStep("months", _make_months)
RECORDS: Final = RowStep(
    "records of before the move",
    Table("user", {}, where="EXISTS (SELECT 1 FROM su_accounting_user a WHERE a.user_id = t.id)"),
    {"id": "bigint"},
    lambda _context: lambda row, _tally: (row["id"],),
    (
        f"""
INSERT INTO portal_host (owner_id, token, former_number, host_cpid, domain_name, given_name, venue, created_at,
       last_contact_at, retired_at, client_version, platform_name, ncpus, p_vendor, p_model, p_features, os_name,
       os_version, product_name, virtualbox_version, coprocs, hardware_digest, hardware_faults)
SELECT u.id, replace(gen_random_uuid()::text, '-', ''), {RECORD}, '', '', '{BEFORE_MOVE}', '', u.created_at,
       u.created_at, u.created_at, '', '', 0, '', '', '', '', '', '', '', '[]', '', '[]'
  FROM moving_rows m JOIN portal_user u ON u.id = m.id JOIN credit_useropening o ON o.user_id = u.id ORDER BY u.id
    ON CONFLICT (owner_id, former_number) WHERE former_number IS NOT NULL DO NOTHING""",
        f"""
INSERT INTO accounting_hostledger (host_id, contacts, level, excluded_types, contact, answer_digest, answers_logged,
       same_answers)
SELECT h.id, 0, '{{0,0,0,0,0}}', '{{}}', '{{}}', '', 0, 0
  FROM moving_rows m JOIN portal_host h ON h.owner_id = m.id AND h.former_number = {RECORD} ORDER BY h.id
    ON CONFLICT DO NOTHING""",
    ),
)
DAYS_OF_PEOPLE: Final = RowStep(
    "days of people",
    Table("su_accounting_user", {"id": 0, **_SOURCE}, key="user_id", more={"owner": OWNER.format("user_id")}),
    {"user_id": "bigint", "id": "bigint", "begin_secs": "float8", "last_secs": "float8", **_DELTAS, **_TOTALS},
    _of_people,
    (
        f"""{_days("user_id")}
INSERT INTO accounting_day AS o (user_id, day, project_id, host_id, flags, {_KINDS})
SELECT d.user_id, d.day, p.id, h.id, d.flags, {_OF_DAY}
  FROM days d
  JOIN portal_host h ON h.owner_id = d.user_id AND h.former_number = {RECORD}
  JOIN accounting_project p ON p.is_before_move
 ORDER BY d.user_id, d.day
    ON CONFLICT (user_id, day, project_id, host_id) DO UPDATE {updated(("flags", *KINDS))}""",
        # The last period may have had another day at the import before. EXCEPT, as without statistics of new months
        # PostgreSQL would compare each day with each.
        f"""{_days("user_id")}
DELETE FROM accounting_day o
 USING portal_host h, (
SELECT o.user_id, o.day
  FROM accounting_day o JOIN portal_host h ON h.id = o.host_id AND h.former_number = {RECORD}
 WHERE o.user_id IN (SELECT user_id FROM moving_rows)
EXCEPT SELECT user_id, day FROM days) moved
 WHERE o.user_id = moved.user_id AND o.day = moved.day AND h.owner_id = o.user_id AND h.id = o.host_id
   AND h.former_number = {RECORD}""",
        f"""
INSERT INTO accounting_hostproject (host_id, project_id, earlier, credited, pending, dropped, listed, state, suspended,
       told_suspended, no_new_work, excluded, no_rsc, update_asked, drop_waiting)
SELECT o.host_id, o.project_id, '{{}}', ARRAY[{", ".join(f"sum({kind})" for kind in KINDS)}]::bigint[],
       '{{0,0,0,0,0,0}}', '{{0,0,0,0,0,0}}', false, '{{}}', false, false, false, false, '{{}}', false, false
  FROM (SELECT DISTINCT user_id FROM moving_rows) m
  JOIN portal_host h ON h.owner_id = m.user_id AND h.former_number = {RECORD}
  JOIN accounting_day o ON o.user_id = h.owner_id AND o.host_id = h.id
 GROUP BY o.host_id, o.project_id ORDER BY 1, 2
    ON CONFLICT (host_id, project_id) DO UPDATE SET credited = excluded.credited""",
        f"""
INSERT INTO accounting_userproject (user_id, project_id, is_chosen, total_ec, avg_ec)
SELECT h.owner_id, c.project_id, false, c.credited[1] + c.credited[2], 0
  FROM (SELECT DISTINCT user_id FROM moving_rows) m
  JOIN portal_host h ON h.owner_id = m.user_id AND h.former_number = {RECORD}
  JOIN accounting_hostproject c ON c.host_id = h.id ORDER BY 1, 2
    ON CONFLICT (user_id, project_id) DO UPDATE SET total_ec = excluded.total_ec""",
    ),
    (
        refers_to("credit_useropening", "user_id", "user_id", UNKNOWN_OWNER),
        # Lists have no totals.
        Check(
            "periods that do not continue each other's totals: their own work counts",
            f"""
SELECT user_id FROM (
SELECT user_id, t_cpu_ec + t_gpu_ec AS total,
       lag(t_cpu_ec + t_gpu_ec + d_cpu_ec + d_gpu_ec) OVER (PARTITION BY user_id ORDER BY id) AS before
  FROM moving_rows) p
 WHERE total > 0 AND abs(total - before) > {MICRO}""",
        ),
    ),
)
DAYS_OF_PROJECTS: Final = RowStep(
    "days of projects",
    Table("su_accounting_project", {"id": 0, **_SOURCE}, key="project_id"),
    {
        **{
            "project_id": "bigint",
            "id": "bigint",
            "project_key": "text",
            "begin_secs": "float8",
            "last_secs": "float8",
        },
        **_DELTAS,
        **_TOTALS,
    },
    _of_projects,
    (
        f"""{_days("project_key")}
INSERT INTO accounting_erasedday AS o (project_id, day, {_KINDS})
SELECT p.id, d.day, {_OF_DAY}
  FROM days d JOIN accounting_project p ON p.address_key = d.project_key ORDER BY p.id, d.day
    ON CONFLICT (project_id, day) DO UPDATE {updated(KINDS)}""",
        f"""{_days("project_key")}
DELETE FROM accounting_erasedday o
 USING (
SELECT o.project_id, o.day
  FROM accounting_erasedday o JOIN accounting_project p ON p.id = o.project_id
 WHERE p.address_key IN (SELECT project_key FROM moving_rows)
   AND o.day <= (SELECT (to_timestamp(max(last_secs)) AT TIME ZONE 'UTC')::date FROM moving_rows)
EXCEPT SELECT p.id, d.day FROM days d JOIN accounting_project p ON p.address_key = d.project_key) moved
 WHERE o.project_id = moved.project_id AND o.day = moved.day""",
    ),
)
SUMS: Final = CallStep("sums", _sum_up)
