"""SQL of the history by app. Reads lock nothing; counting locks the days that it adds to, in the order of their key."""

from __future__ import annotations

from typing import Final

from credit.engine.facts import ProcessorType
from credit.engine.rules import MIN_ELAPSED_SECS
from credit.engine.states import Outcome

MAX_RUN_SECS: Final = 1e11
MOST_MICRO: Final = 9 * 10**18
"""The maximum of a sum, in millionths of a credit or second: it must fit into a bigint."""
RUN_SECS: Final = f"""(CASE WHEN r.elapsed_secs >= {MIN_ELAPSED_SECS:.6f} THEN greatest(0, least(r.elapsed_secs,
    {MAX_RUN_SECS:.0f}, extract(epoch FROM r.received_at - r.sent_at)::float8)) ELSE 0 END)"""
"""The run time of a result ``r``: at most the time between sending and report, whatever was reported."""
_ON_GPU: Final = f"r.processor_type <> '{ProcessorType.CPU}' AS on_gpu"
_GRANTED_ON: Final = "(coalesce(r.granted_at, r.received_at) AT TIME ZONE 'UTC')::date"
_REPORTED_ON: Final = "(r.received_at AT TIME ZONE 'UTC')::date"
_OF_RESULTS: Final = f"""
SELECT {{columns}}, {_ON_GPU}, {_GRANTED_ON} AS day,
       greatest(coalesce(r.granted_credit, 0), r.partial_credit) AS credit, 0::float8 AS elapsed_secs,
       0 AS nsucceeded, 0 AS nfailed
  FROM {{results}} WHERE {{of}} AND {_GRANTED_ON} BETWEEN {{first}} AND {{last}}
 UNION ALL
SELECT {{columns}}, {_ON_GPU}, {_REPORTED_ON}, 0, {RUN_SECS},
       (r.outcome = {Outcome.SUCCESS.value})::int, (r.outcome <> {Outcome.SUCCESS.value})::int
  FROM {{results}} WHERE {{of}} AND {_REPORTED_ON} BETWEEN {{first}} AND {{last}}"""
"""For results ``r``: credit on the UTC day of the grant; run time and outcome on the UTC day of the report.

Partial credit belongs to the day of the final grant, or of the report if there is none. A result that the computer
reported as a success counts as a success, whatever the validator decides later.
"""

_MINE: Final = "r.user_id = %(user)s AND r.app_id = %(app)s AND (%(host)s::bigint IS NULL OR r.host_id = %(host)s)"
_LIVE: Final = _OF_RESULTS.format(
    columns="r.host_id", results="credit_result r", of=_MINE, first="%(first)s", last="%(last)s"
)
_FOUND: Final = f"""{_LIVE}
 UNION ALL
SELECT r.host_id, r.on_gpu, r.day, r.credit, r.elapsed_secs, r.nsucceeded, r.nfailed
  FROM credit_archivedday r WHERE {_MINE} AND r.day BETWEEN %(first)s AND %(last)s"""
# Whole numbers of 1e-6 credits and seconds, as other histories have them.
_AMOUNTS: Final = ", ".join(
    f"least(round(coalesce(sum({column}) FILTER (WHERE {kind}), 0) * 1e6), {MOST_MICRO})::bigint"
    for column in ("credit", "elapsed_secs")
    for kind in ("NOT on_gpu", "on_gpu")
)
DAYS: Final = f"""
SELECT day, host_id, {_AMOUNTS}, sum(nsucceeded), sum(nfailed)
  FROM ({_FOUND}) f WHERE (day, coalesce(host_id, 0)) > (%(after_day)s, %(after_host)s)
 GROUP BY day, host_id ORDER BY day, host_id NULLS FIRST LIMIT %(limit)s"""
STEPS: Final = f"""
SELECT date_trunc(%(step)s, day::timestamp)::date AS start, host_id, {_AMOUNTS}, sum(nsucceeded), sum(nfailed)
  FROM ({_FOUND}) f GROUP BY start, host_id ORDER BY start, host_id NULLS FIRST"""
APPS: Final = "SELECT id, coalesce(nullif(user_friendly_name, ''), name) FROM credit_app ORDER BY 2, 1"

_ARCHIVED: Final = _OF_RESULTS.format(
    columns="c.user_id, c.app_id, c.host_id",
    results="{counted} c, LATERAL jsonb_populate_record(NULL::credit_result, c.facts) r",
    of="c.user_id IS NOT NULL",
    first="'-infinity'",
    last="'infinity'",
)
COUNT: Final = f"""
INSERT INTO credit_archivedday AS a (user_id, app_id, host_id, day, on_gpu, credit, elapsed_secs, nsucceeded, nfailed)
SELECT user_id, app_id, host_id, day, on_gpu, sum(credit), sum(elapsed_secs), sum(nsucceeded), sum(nfailed)
  FROM ({_ARCHIVED}) f GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 4, 3, 5
    ON CONFLICT (user_id, app_id, day, host_id, on_gpu) DO UPDATE
   SET credit = a.credit + excluded.credit, elapsed_secs = a.elapsed_secs + excluded.elapsed_secs,
       nsucceeded = a.nsucceeded + excluded.nsucceeded, nfailed = a.nfailed + excluded.nfailed"""
"""Adds tasks to their days when they are archived: ``counted`` has their user_id, app_id, host_id and columns as JSON.
"""
MERGE: Final = """
  WITH moved AS (
DELETE FROM credit_archivedday WHERE host_id = %(older)s
RETURNING user_id, app_id, day, on_gpu, credit, elapsed_secs, nsucceeded, nfailed)
INSERT INTO credit_archivedday AS a (user_id, app_id, host_id, day, on_gpu, credit, elapsed_secs, nsucceeded, nfailed)
SELECT user_id, app_id, %(newer)s, day, on_gpu, credit, elapsed_secs, nsucceeded, nfailed
  FROM moved ORDER BY 1, 2, 4, 5
    ON CONFLICT (user_id, app_id, day, host_id, on_gpu) DO UPDATE
   SET credit = a.credit + excluded.credit, elapsed_secs = a.elapsed_secs + excluded.elapsed_secs,
       nsucceeded = a.nsucceeded + excluded.nsucceeded, nfailed = a.nfailed + excluded.nfailed"""
"""One statement, so that whatever a purge adds to the older computer's days meanwhile is moved too, not lost."""
