"""SQL of the ledger's tasks: create partitions, roll days up, check invariants.

No statement here locks a computer's ledger. Only the creation of a partition makes clients' requests wait.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from accounting.engine.amounts import KINDS


class AdvisoryLock(IntEnum):
    """Locks between runs of the same task; any numbers will do that nothing else in the database uses."""

    PARTITIONS = 7_130_001
    ROLL_UP = 7_130_002
    STANDINGS = 7_130_003
    MONTHS = 7_130_004
    BADGES = 7_130_005
    PREPARE = 7_130_007


WAIT_FOR_LOCK: Final = "SELECT pg_advisory_xact_lock(%s)"
TRY_LOCK: Final = "SELECT pg_try_advisory_xact_lock(%s)"

# Locks the table of days against everything else while it is attached; runs under AdvisoryLock.PARTITIONS.
CREATE_PARTITION: Final = (
    "CREATE TABLE {name} PARTITION OF accounting_day FOR VALUES FROM (%s) TO (%s) WITH (fillfactor = 80)"
)

# Locks nothing. The partitions' names are in the order of their months (ledger.partitions.partition_of).
MONTHS_AHEAD: Final = """
SELECT count(*) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
 WHERE i.inhparent = 'accounting_day'::regclass
   AND c.relname > to_char(%(now)s AT TIME ZONE 'UTC', '"accounting_day_"YYYY_MM')
"""

# Reads the days; locks the projects' days that it writes. Runs under AdvisoryLock.ROLL_UP.
ROLL_UP_PROJECT_DAYS: Final = """
INSERT INTO accounting_projectday (project_id, day, hosts, users, cpu_ec, gpu_ec, cpu_time, gpu_time, njobs_success,
       njobs_error, rolled_up_at)
SELECT project_id, day, count(DISTINCT host_id), count(DISTINCT user_id), sum(cpu_ec), sum(gpu_ec), sum(cpu_time),
       sum(gpu_time), sum(njobs_success), sum(njobs_error), %(now)s
  FROM (SELECT project_id, day, user_id, host_id, cpu_ec, gpu_ec, cpu_time, gpu_time, njobs_success, njobs_error
          FROM accounting_day
         UNION ALL
        SELECT project_id, day, NULL, NULL, cpu_ec, gpu_ec, cpu_time, gpu_time, njobs_success, njobs_error
          FROM accounting_erasedday) AS days
 WHERE day BETWEEN %(first)s AND %(today)s GROUP BY project_id, day
ON CONFLICT (project_id, day) DO UPDATE
   SET hosts = excluded.hosts, users = excluded.users, cpu_ec = excluded.cpu_ec, gpu_ec = excluded.gpu_ec,
       cpu_time = excluded.cpu_time, gpu_time = excluded.gpu_time, njobs_success = excluded.njobs_success,
       njobs_error = excluded.njobs_error, rolled_up_at = excluded.rolled_up_at
"""

# Reads totals and days; locks the volunteers' rows at projects that it writes. Runs under AdvisoryLock.ROLL_UP.
# Credit arrives all day long: it counts as credited in the middle of its day, or of the part of today that is over, and
# decays from then on. If one computer of a volunteer has reported lately, all of their computers are summed up.
ROLL_UP_USER_PROJECTS: Final = """
WITH totals AS (
  SELECT h.owner_id AS user_id, p.project_id, sum(p.credited[1] + p.credited[2])::bigint AS total
    FROM accounting_hostproject p JOIN portal_host h ON h.id = p.host_id
   WHERE h.owner_id IN (SELECT owner_id FROM portal_host WHERE last_contact_at >= %(since)s
                        UNION SELECT user_id FROM accounting_userproject WHERE avg_ec > 0)
   GROUP BY h.owner_id, p.project_id),
recent AS (
  SELECT user_id, project_id,
         sum((cpu_ec + gpu_ec) / 1e6 * power(0.5, CASE day WHEN %(today)s THEN %(part)s / 2
                ELSE %(today)s - day + %(part)s - 0.5 END / %(half_life)s)) AS ec
    FROM accounting_day WHERE day BETWEEN %(averaged)s AND %(today)s GROUP BY user_id, project_id)
INSERT INTO accounting_userproject (user_id, project_id, is_chosen, total_ec, avg_ec, avg_at)
SELECT t.user_id, t.project_id, false, t.total, coalesce(r.ec, 0) * ln(2) / %(half_life)s, %(now)s
  FROM totals t LEFT JOIN recent r USING (user_id, project_id)
ON CONFLICT (user_id, project_id) DO UPDATE
   SET total_ec = excluded.total_ec, avg_ec = excluded.avg_ec, avg_at = excluded.avg_at
"""

# Where the roll-up begins: the day before the last run, as it may have had reports since; at first, the oldest day.
FIRST_UNFINISHED_DAY: Final = """
SELECT coalesce((SELECT (max(rolled_up_at) AT TIME ZONE 'UTC')::date - 1 FROM accounting_projectday),
                (SELECT min(day) FROM accounting_day))
"""

# Held by code that writes days of closed months (ledger.months), so that no month is closed meanwhile.
LOCK_MONTHS: Final = f"SELECT pg_advisory_xact_lock_shared({AdvisoryLock.MONTHS.value})"

# The statements of closing a month run under AdvisoryLock.MONTHS. They lock the sums that they write.
OLDEST_DAY: Final = "SELECT least((SELECT min(day) FROM accounting_day), (SELECT min(day) FROM accounting_grantedday))"
_SUMS: Final = ", ".join(f"sum({kind})::bigint AS {kind}" for kind in KINDS)
# About the most that 64 bits hold: only a fraudulent project grants more.
MOST_CREDIT: Final = 9 * 10**18
_MONTHS_OF_DAYS: Final = f"""
SELECT user_id, date_trunc('month', day)::date AS month, project_id, host_id, {_SUMS}, bit_or(flags) AS flags,
       least(sum(granted), {MOST_CREDIT})::bigint AS granted
  FROM (SELECT user_id, day, project_id, host_id, {", ".join(KINDS)}, flags, 0 AS granted FROM accounting_day
         UNION ALL
        SELECT user_id, day, project_id, host_id, 0, 0, 0, 0, 0, 0, 0::smallint, credit
          FROM accounting_grantedday) AS days
 WHERE {{days}} GROUP BY 1, 2, 3, 4"""
_BEST_DAYS: Final = """
SELECT DISTINCT ON (user_id, month) user_id, month, day, ec, count(*) OVER (PARTITION BY user_id, month) AS active_days
  FROM (SELECT user_id, date_trunc('month', day)::date AS month, day, sum(cpu_ec + gpu_ec)::bigint AS ec
          FROM accounting_day WHERE {days} GROUP BY user_id, day HAVING sum(cpu_ec + gpu_ec) > 0) AS found
 ORDER BY user_id, month, ec DESC, day"""
_IN_MONTH: Final = "day >= %(month)s AND day < %(next)s"
CLOSE_MONTH: Final = (
    f"""
INSERT INTO accounting_month (user_id, month, project_id, host_id, {", ".join(KINDS)}, flags, granted)
{_MONTHS_OF_DAYS.format(days=_IN_MONTH)} ORDER BY 1, 2, 3, 4""",
    f"""
INSERT INTO accounting_bestday (user_id, month, day, ec, active_days)
{_BEST_DAYS.format(days=_IN_MONTH)}""",
)
FORGET_MONTHS: Final = (
    "DELETE FROM accounting_month WHERE month >= %(first)s",
    "DELETE FROM accounting_bestday WHERE month >= %(first)s",
)

# The invariants of docs/explanation/accounting.md; each statement returns violations of one, and locks nothing.
CREDITED_IS_SUM_OF_DAYS: Final = f"""
WITH days AS (
  SELECT host_id, project_id, ARRAY[{", ".join(f"sum({kind})" for kind in KINDS)}]::bigint[] AS total
    FROM accounting_day
   GROUP BY host_id, project_id)
SELECT coalesce(p.host_id, d.host_id), coalesce(p.project_id, d.project_id), p.credited, d.total
  FROM accounting_hostproject p FULL JOIN days d ON d.host_id = p.host_id AND d.project_id = p.project_id
 WHERE coalesce(p.credited, '{{0,0,0,0,0,0}}') <> coalesce(d.total, '{{0,0,0,0,0,0}}')
"""
NEGATIVE_TOTAL: Final = """
SELECT host_id, project_id FROM accounting_hostproject
 WHERE 0 > ANY (credited) OR 0 > ANY (pending) OR 0 > ANY (dropped) OR 0 > ANY (reported) OR 0 > ANY (earlier)
"""
NEGATIVE_ALLOWANCE: Final = "SELECT host_id FROM accounting_hostledger WHERE 0 > ANY (level)"
DAYS_OF_OTHER_OWNERS: Final = """
SELECT d.host_id, d.user_id, h.owner_id, count(*)
  FROM accounting_day d
  LEFT JOIN portal_host h ON h.id = d.host_id
 WHERE h.owner_id IS DISTINCT FROM d.user_id GROUP BY 1, 2, 3
"""
# Days before the last run's yesterday get no more reports, so their sums are final.
ROLLED_UP_IS_SUM_OF_DAYS: Final = f"""
WITH days AS (
  SELECT project_id, day, {", ".join(f"sum({kind}) AS {kind}" for kind in KINDS)}
    FROM (SELECT project_id, day, {", ".join(KINDS)} FROM accounting_day
           UNION ALL SELECT project_id, day, {", ".join(KINDS)} FROM accounting_erasedday) AS kept
   GROUP BY project_id, day)
SELECT project_id, day FROM accounting_projectday p FULL JOIN days d USING (project_id, day)
 WHERE day < (SELECT (max(rolled_up_at) AT TIME ZONE 'UTC')::date - 1 FROM accounting_projectday)
   AND ({" OR ".join(f"coalesce(p.{kind}, 0) <> coalesce(d.{kind}, 0)" for kind in KINDS)})
"""
_CLOSED: Final = "day < (SELECT until FROM accounting_closedmonths)"
_OTHER: Final = " OR ".join([f"coalesce(m.{kind}, 0) <> coalesce(d.{kind}, 0)" for kind in (*KINDS, "flags")])
MONTHS_ARE_SUMS_OF_DAYS: Final = f"""
WITH d AS ({_MONTHS_OF_DAYS.format(days=_CLOSED)})
SELECT coalesce(m.user_id, d.user_id), coalesce(m.month, d.month), coalesce(m.project_id, d.project_id),
       coalesce(m.host_id, d.host_id)
  FROM accounting_month m
  FULL JOIN d ON d.user_id = m.user_id AND d.month = m.month AND d.project_id = m.project_id AND d.host_id = m.host_id
 WHERE coalesce(m.granted, 0) <> coalesce(d.granted, 0)
    OR {_OTHER}"""
BEST_DAYS_ARE_BEST: Final = f"""
WITH d AS ({_BEST_DAYS.format(days=_CLOSED)})
SELECT coalesce(m.user_id, d.user_id), coalesce(m.month, d.month)
  FROM accounting_bestday m FULL JOIN d ON d.user_id = m.user_id AND d.month = m.month
 WHERE (m.day, m.ec, m.active_days) IS DISTINCT FROM (d.day, d.ec, d.active_days)"""
