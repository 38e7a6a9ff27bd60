"""(host, version) records: made when they are missing, with what an older version of the same program knew of the host.

Credit document, "Statistics maintained by the server". The scheduler makes them when it sends a job; the validator
makes those that are missing all the same, in a transaction of its own: so that nobody waits for a row that another
one is only about to insert.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from django.db import connection, transaction

from credit.engine.facts import VersionFacts
from credit.engine.rules import Rules
from credit.models import ProcessorType

_STATISTICS: Final = (
    "pfc_n, pfc_avg, et_n, et_avg, et_var, et_q, turnaround_n, turnaround_avg, turnaround_var, turnaround_q,"
    " consecutive_valid, scale_probation, host_scale_at, error_rate, max_jobs_per_day"
)
# The newest older version's record, if there is one: same app, platform and plan class.
_RECORDS: Final = f"""
WITH wanted AS (
  SELECT k.host, nullif(k.version, 0) AS version, k.type FROM unnest(%s::bigint[], %s::bigint[], %s::text[])
         AS k(host, version, type)),
older AS (
  SELECT DISTINCT ON (w.host, w.version) w.host, w.version, h.*
    FROM wanted w JOIN credit_appversion v ON v.id = w.version
    JOIN credit_appversion o ON o.app_id = v.app_id AND o.platform_id = v.platform_id AND o.plan_class = v.plan_class
     AND o.version_num < v.version_num
    JOIN credit_hostappversion h ON h.host_id = w.host AND h.app_version_id = o.id
   ORDER BY w.host, w.version, o.version_num DESC)
INSERT INTO credit_hostappversion (host_id, app_id, app_version_id, processor_type, {_STATISTICS})
SELECT w.host, %s, w.version, w.type, coalesce(o.pfc_n, 0), o.pfc_avg, coalesce(o.et_n, 0), o.et_avg, o.et_var,
       coalesce(o.et_q, 0), coalesce(o.turnaround_n, 0), o.turnaround_avg, o.turnaround_var,
       coalesce(o.turnaround_q, 0), coalesce(o.consecutive_valid, 0), coalesce(o.scale_probation, true),
       o.host_scale_at, coalesce(o.error_rate, %s), coalesce(o.max_jobs_per_day, 0)
  FROM wanted w JOIN portal_host p ON p.id = w.host LEFT JOIN older o ON o.host = w.host AND o.version = w.version
 ORDER BY w.host, w.version, w.type
ON CONFLICT DO NOTHING
"""
_USERS: Final = """
INSERT INTO credit_usercredit (user_id, total_credit, expavg_credit)
SELECT id, 0, 0 FROM portal_user WHERE id = ANY (%s) ORDER BY id ON CONFLICT DO NOTHING
"""
_HOSTS: Final = """
INSERT INTO credit_hostcredit (host_id, total_credit, expavg_credit)
SELECT id, 0, 0 FROM portal_host WHERE id = ANY (%s) ORDER BY id ON CONFLICT DO NOTHING
"""
_MEDIANS: Final = """
SELECT app_version_id, percentile_cont(0.5) WITHIN GROUP (ORDER BY pfc_avg)
  FROM credit_hostappversion WHERE app_version_id = ANY (%s) AND pfc_n >= %s AND pfc_avg > 0 GROUP BY app_version_id
"""


def create_missing(
    app_id: int, records: Sequence[tuple[int, int, int]], users: Sequence[int], hosts: Sequence[int]
) -> None:
    """Make the records of (host, version or 0, type of processor by its place from 1) and accounts that are missing."""
    types = list(ProcessorType)
    with transaction.atomic(), connection.cursor() as cursor:
        if records:
            columns = [list(column) for column in zip(*records, strict=True)]
            columns[2] = [types[place - 1] for place in columns[2]]
            cursor.execute(_RECORDS, [*columns, app_id, Rules.published().initial_error_rate])
        if users:
            cursor.execute(_USERS, [list(users)])
        if hosts:
            cursor.execute(_HOSTS, [list(hosts)])


def use_medians(versions: Iterable[VersionFacts], rules: Rules) -> None:
    """Where an app wants it, a version's average is the median of its hosts' (``normalisation.sample_median``)."""
    by_id = {version.id: version for version in versions}
    with connection.cursor() as cursor:
        cursor.execute(_MEDIANS, [list(by_id), rules.min_host_samples])
        medians = dict(cursor.fetchall())
    for id_, version in by_id.items():
        version.pfc.avg = medians.get(id_)
