"""SQL of the reconciliation. Only its own two tables are written.

Locks, in this order: the ledger rows of the computers that the statistics list for the first time, by id, in a mode
that does not block reports; the settlements of the project by id. Merging two computers and erasing lock theirs in the
same order.
"""

from __future__ import annotations

from typing import Final

# Projects whose statistics were read since they were last reconciled. Locks nothing.
DUE: Final = """
SELECT i.project_id FROM accounting_statisticsimport i LEFT JOIN accounting_projectratio r USING (project_id)
 WHERE i.update_time > coalesce(r.as_of, '-infinity') ORDER BY i.project_id"""
AS_OF: Final = "SELECT update_time FROM accounting_statisticsimport WHERE project_id = %(project)s"

NEW: Final = """
SELECT DISTINCT t.host_id FROM accounting_grantedtotal t
 WHERE t.project_id = %(project)s
   AND NOT EXISTS (SELECT FROM accounting_settlement s WHERE s.host_id = t.host_id AND s.project_id = %(project)s)"""
# A record that is merged into another computer meanwhile starts no settlement.
LOCK_NEW: Final = """
SELECT host_id FROM accounting_hostledger WHERE host_id = ANY(%(new)s) ORDER BY host_id FOR KEY SHARE"""
LOCK: Final = "SELECT id FROM accounting_settlement WHERE project_id = %(project)s ORDER BY id FOR UPDATE"

# Computers that the statistics list for the first time. The estimate and the day's part of it come from one snapshot,
# and reports write both at once. All of a record's grants are known if all of its total was counted, and for this
# computer: one that was told apart may have brought the record along.
BEGIN: Final = """
INSERT INTO accounting_settlement (host_id, project_id, seen_on, read_on, estimated_before, is_whole, granted,
       granted_last, compared_from, estimated, is_outside)
SELECT t.host_id, %(project)s, %(today)s, '2000-01-01', e.total - coalesce(d.cpu_ec + d.gpu_ec, 0),
       w.is_whole, 0, 0, CASE WHEN w.is_whole THEN 0 ELSE e.total END, 0, false
  FROM (SELECT host_id, bool_and(counted_credit >= highest_credit) AS is_counted,
               sum(counted_credit) AS counted
          FROM accounting_grantedtotal WHERE project_id = %(project)s AND host_id = ANY(%(new)s)
         GROUP BY host_id) t
  JOIN portal_host h ON h.id = t.host_id
  LEFT JOIN accounting_hostproject p ON p.host_id = t.host_id AND p.project_id = %(project)s
  CROSS JOIN LATERAL (SELECT coalesce(p.credited[1] + p.credited[2], 0) AS total) e
 CROSS JOIN LATERAL (
       SELECT t.is_counted AND t.counted <= coalesce(sum(g.credit), 0) AS is_whole FROM accounting_grantedday g
        WHERE g.user_id = h.owner_id AND g.project_id = %(project)s AND g.host_id = t.host_id) w
  LEFT JOIN accounting_day d
    ON d.user_id = h.owner_id AND d.day = %(today)s AND d.project_id = %(project)s AND d.host_id = t.host_id
 WHERE NOT EXISTS (SELECT FROM accounting_settlement s WHERE s.host_id = t.host_id AND s.project_id = %(project)s)
 ORDER BY t.host_id
ON CONFLICT (host_id, project_id) DO NOTHING"""

# Grants of days before the last statistics are final, so only later ones are added up again.
ADD_GRANTS: Final = """
UPDATE accounting_settlement s
   SET granted = least(s.granted - s.granted_last + n.granted, %(most)s),
       granted_last = least(n.granted_last, %(most)s), read_on = n.read_on, estimated = n.estimated
  FROM (SELECT o.id, greatest(o.read_on, %(read_on)s) AS read_on, coalesce(sum(g.credit), 0) AS granted,
               coalesce(sum(g.credit) FILTER (WHERE g.day >= greatest(o.read_on, %(read_on)s)), 0) AS granted_last,
               greatest(0, coalesce(p.credited[1] + p.credited[2], 0) - o.compared_from) AS estimated
          FROM accounting_settlement o
          JOIN portal_host h ON h.id = o.host_id
          LEFT JOIN accounting_hostproject p ON p.host_id = o.host_id AND p.project_id = o.project_id
          LEFT JOIN accounting_grantedday g
            ON g.user_id = h.owner_id AND g.day >= o.read_on AND g.project_id = o.project_id AND g.host_id = o.host_id
         WHERE o.project_id = %(project)s
         GROUP BY o.id, p.host_id, p.project_id) n
 WHERE s.id = n.id"""

# Only computers with enough of both, for long enough.
_COMPARED: Final = "estimated >= %(least)s AND seen_on <= %(old_enough)s"
MEDIAN: Final = f"""
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY granted::float8 / estimated), count(*)
  FROM accounting_settlement WHERE project_id = %(project)s AND {_COMPARED}"""
MARK: Final = f"""
UPDATE accounting_settlement SET is_outside = NOT is_outside
 WHERE project_id = %(project)s
   AND is_outside <> ({_COMPARED} AND granted::float8 / greatest(estimated, 1) NOT BETWEEN %(low)s AND %(high)s)"""
KEEP_RATIO: Final = """
INSERT INTO accounting_projectratio (project_id, as_of, median, computers)
VALUES (%(project)s, %(as_of)s, %(median)s, %(computers)s)
ON CONFLICT (project_id) DO UPDATE
   SET as_of = excluded.as_of, median = excluded.median, computers = excluded.computers"""

# All of a volunteer's computers at all projects: their estimates, and how far these are settled; without the estimates
# of the day seen_on.
STANDINGS: Final = """
WITH mine AS (SELECT id FROM portal_host WHERE owner_id = %(user)s),
keys AS (
  SELECT host_id, project_id FROM accounting_hostproject WHERE host_id IN (SELECT id FROM mine)
   UNION
  SELECT host_id, project_id FROM accounting_settlement WHERE host_id IN (SELECT id FROM mine))
SELECT k.host_id, k.project_id, coalesce(p.credited[1] + p.credited[2], 0), s.seen_on, s.read_on,
       s.estimated_before, s.granted, s.is_whole, s.estimated, r.median, r.computers
  FROM keys k
  LEFT JOIN accounting_hostproject p ON p.host_id = k.host_id AND p.project_id = k.project_id
  LEFT JOIN accounting_settlement s ON s.host_id = k.host_id AND s.project_id = k.project_id
  LEFT JOIN accounting_projectratio r ON r.project_id = s.project_id"""
# The estimates of the days on which they were first seen. Joined to the settlements, all months would be planned.
SEEN_DAYS: Final = """
SELECT host_id, project_id, day, cpu_ec + gpu_ec FROM accounting_day
 WHERE user_id = %(user)s AND day = ANY (%(days)s)"""

# The settled credit of each day of some ranges: grants, and final estimates. The ranges are written out, so that only
# their months are read.
_OF: Final = """
{t}.user_id = %(user)s AND {days}
   AND {t}.host_id = coalesce(%(host)s, {t}.host_id) AND {t}.project_id = coalesce(%(project)s, {t}.project_id)"""
_SETTLED: Final = """
SELECT day, sum(granted), sum(estimated)
  FROM (SELECT g.day, g.credit AS granted, 0 AS estimated FROM accounting_grantedday g WHERE {of_grants}
         UNION ALL
        SELECT d.day, 0, d.cpu_ec + d.gpu_ec
          FROM accounting_day d
          LEFT JOIN accounting_settlement s ON s.host_id = d.host_id AND s.project_id = d.project_id
         WHERE {of_days} AND (s.id IS NULL OR (NOT s.is_whole AND d.day <= s.seen_on))) found
 GROUP BY day"""
# The same for whole closed months (ledger.months), in which nothing was first seen.
SETTLED_MONTHS: Final = f"""
SELECT m.month, sum(m.granted),
       coalesce(sum(m.cpu_ec + m.gpu_ec) FILTER (WHERE s.id IS NULL OR (NOT s.is_whole AND m.month <= s.seen_on)), 0)
  FROM accounting_month m
  LEFT JOIN accounting_settlement s ON s.host_id = m.host_id AND s.project_id = m.project_id
 WHERE {_OF.format(t="m", days="m.month = ANY (%(months)s)")}
 GROUP BY m.month"""


def settled(ranges: int) -> str:
    """Return the statement for this many ranges of days: ``first0`` to ``last0``, and so on."""

    def of(table: str) -> str:
        either = [f"{table}.day BETWEEN %(first{number})s AND %(last{number})s" for number in range(ranges)]
        return _OF.format(t=table, days=f"({' OR '.join(either)})")

    return _SETTLED.format(of_grants=of("g"), of_days=of("d"))


# Both for each open day, of each computer at each project. ``oldest`` names the months to be read.
_OPEN: Final = """
  JOIN {table} t ON t.user_id = %(user)s AND t.day > %(oldest)s AND t.day > k.closed AND t.project_id = k.project_id
   AND t.host_id = k.host_id"""
OPEN: Final = f"""
WITH k AS (SELECT * FROM unnest(%(hosts)s::bigint[], %(projects)s::bigint[], %(closed)s::date[])
                           AS k(host_id, project_id, closed))
SELECT host_id, project_id, day, sum(estimated), sum(granted)
  FROM (SELECT k.host_id, k.project_id, t.day, t.cpu_ec + t.gpu_ec AS estimated, 0 AS granted
          FROM k {_OPEN.format(table="accounting_day")}
         UNION ALL
        SELECT k.host_id, k.project_id, t.day, 0, t.credit FROM k {_OPEN.format(table="accounting_grantedday")}) found
 GROUP BY host_id, project_id, day"""
