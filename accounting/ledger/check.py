"""Re-derives what the ledger must satisfy from its own rows; every difference is a line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from django.db import connection

_KINDS: Final = ("cpu_ec", "gpu_ec", "cpu_time", "gpu_time", "njobs_success", "njobs_error")

_CREDITED_IS_SUM_OF_DAYS: Final = f"""
WITH days AS (
  SELECT host_id, project_id, ARRAY[{", ".join(f"sum({kind})" for kind in _KINDS)}]::bigint[] AS total
    FROM accounting_day GROUP BY host_id, project_id)
SELECT coalesce(p.host_id, d.host_id), coalesce(p.project_id, d.project_id), p.credited, d.total
  FROM accounting_hostproject p FULL JOIN days d ON d.host_id = p.host_id AND d.project_id = p.project_id
 WHERE coalesce(p.credited, '{{0,0,0,0,0,0}}') <> coalesce(d.total, '{{0,0,0,0,0,0}}')
"""
_NEGATIVE: Final = """
SELECT host_id, project_id FROM accounting_hostproject
 WHERE 0 > ANY (credited) OR 0 > ANY (pending) OR 0 > ANY (dropped) OR 0 > ANY (reported) OR 0 > ANY (high)
"""
_NEGATIVE_LEVEL: Final = "SELECT host_id FROM accounting_hostledger WHERE 0 > ANY (level)"
_OWNER: Final = """
SELECT d.host_id, d.user_id, h.owner_id, count(*) FROM accounting_day d LEFT JOIN portal_host h ON h.id = d.host_id
 WHERE h.owner_id IS DISTINCT FROM d.user_id GROUP BY 1, 2, 3
"""
# Days before the last run's yesterday get no reports any more, so their sums are final.
_ROLLED_UP: Final = f"""
WITH days AS (
  SELECT project_id, day, {", ".join(f"sum({kind}) AS {kind}" for kind in _KINDS)}
    FROM (SELECT project_id, day, {", ".join(_KINDS)} FROM accounting_day
           UNION ALL SELECT project_id, day, {", ".join(_KINDS)} FROM accounting_erasedday) AS kept
   GROUP BY project_id, day)
SELECT project_id, day FROM accounting_projectday p FULL JOIN days d USING (project_id, day)
 WHERE day < (SELECT (max(rolled_up_at) AT TIME ZONE 'UTC')::date - 1 FROM accounting_projectday)
   AND ({" OR ".join(f"coalesce(p.{kind}, 0) <> coalesce(d.{kind}, 0)" for kind in _KINDS)})
"""


def differences() -> Iterator[str]:
    """A sentence for each invariant that does not hold (docs/accounting.md, invariants)."""
    with connection.cursor() as cursor:
        cursor.execute(_CREDITED_IS_SUM_OF_DAYS)
        for host, project, credited, days in cursor.fetchall():
            yield f"host {host}, project {project}: credited {credited}, but the days' sum is {days}"
        cursor.execute(_NEGATIVE)
        for host, project in cursor.fetchall():
            yield f"host {host}, project {project}: a total is negative"
        cursor.execute(_NEGATIVE_LEVEL)
        for (host,) in cursor.fetchall():
            yield f"host {host}: the allowance is negative"
        cursor.execute(_OWNER)
        for host, user, owner, rows in cursor.fetchall():
            yield f"host {host}: {rows} days belong to user {user}, the host to {owner}"
        cursor.execute(_ROLLED_UP)
        for project, day in cursor.fetchall():
            yield f"project {project}, {day}: the roll-up differs from the days"
