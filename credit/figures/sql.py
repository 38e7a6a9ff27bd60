"""SQL of figures of jobs and of credit. Columns are named after the figures.

States are literals: the conditions of partial indexes need them, so that only waiting rows are counted.
"""

from __future__ import annotations

from typing import Final

from credit.app_history.sql import RUN_SECS
from credit.engine.explanation import ClaimRule
from credit.engine.rules import CREDIT_PER_DAY, GFLOP_DAY
from credit.engine.states import AssimilateState, FileDeleteState, Outcome, ServerState, ValidateState

# --- Waiting work: each has a partial index -----------------------------------------------------------

UNSENT: Final = f"""
SELECT a.name AS key, q.n AS "jobs.unsent", extract(epoch FROM %(now)s - r.created_at) AS "jobs.unsent_oldest"
  FROM (SELECT app_id, count(*) AS n, min(id) AS first
          FROM (SELECT app_id, id FROM credit_result WHERE server_state = {ServerState.UNSENT} AND lane = 0
                 UNION ALL
                SELECT app_id, id FROM credit_result WHERE server_state = {ServerState.UNSENT} AND lane <> 0) r
         GROUP BY app_id) q
  JOIN credit_result r ON r.id = q.first JOIN credit_app a ON a.id = q.app_id
"""
IN_PROGRESS: Final = f"""
SELECT a.name AS key, q.n AS "jobs.in_progress", q.late AS "jobs.late"
  FROM (SELECT app_id, count(*) AS n, count(*) FILTER (WHERE deadline_at < %(now)s - interval '10 minutes') AS late
          FROM credit_result WHERE server_state = {ServerState.IN_PROGRESS} GROUP BY app_id) q
  JOIN credit_app a ON a.id = q.app_id
"""
_WAITING: Final = """
SELECT a.name AS key, q.n AS "{figure}"
  FROM (SELECT app_id, count(*) AS n FROM credit_workunit WHERE {condition} GROUP BY app_id) q
  JOIN credit_app a ON a.id = q.app_id
"""
# For the first 200 that wait: since when they have had everything they need.
_OLDEST: Final = """
SELECT a.name AS key, greatest(extract(epoch FROM %(now)s - min(ready.at)), 0) AS "{figure}_oldest"
  FROM credit_app a,
       LATERAL (SELECT id FROM credit_workunit WHERE app_id = a.id AND {condition} ORDER BY app_id, id LIMIT 200) w,
       LATERAL (SELECT max({at}) AS at FROM credit_result r WHERE r.workunit_id = w.id) ready
 GROUP BY a.name
"""
# Without those that wait for a third volunteer to confirm a pair.
_TO_VALIDATE: Final = {
    "figure": "jobs.to_validate",
    "condition": "need_validate AND (validate_after IS NULL OR validate_fault <> '')",
}
_TO_ASSIMILATE: Final = {
    "figure": "jobs.to_assimilate", "condition": f"assimilate_state = {AssimilateState.READY}",
}  # fmt: skip
TO_VALIDATE: Final = _WAITING.format(**_TO_VALIDATE)
TO_ASSIMILATE: Final = _WAITING.format(**_TO_ASSIMILATE)
OLDEST_TO_VALIDATE: Final = _OLDEST.format(**_TO_VALIDATE, at="r.received_at")
OLDEST_TO_ASSIMILATE: Final = _OLDEST.format(**_TO_ASSIMILATE, at="coalesce(r.granted_at, r.received_at)")
NOT_COMPARABLE: Final = _WAITING.format(
    figure="jobs.not_comparable", condition="need_validate AND validate_fault <> ''"
)
TO_DELETE: Final = f"""
SELECT count(*) AS "jobs.to_delete", coalesce(greatest(extract(epoch FROM %(now)s - (
         SELECT min(f.assimilated_at) FROM (SELECT assimilated_at FROM credit_workunit
           WHERE file_delete_state = {FileDeleteState.READY} ORDER BY id LIMIT 200) f)), 0), 0)
           AS "jobs.to_delete_oldest"
  FROM credit_workunit WHERE file_delete_state = {FileDeleteState.READY}
"""
TO_TRANSITION: Final = """
SELECT count(*) AS "jobs.to_transition",
       coalesce(greatest(extract(epoch FROM %(now)s - min(transition_at)), 0), 0) AS "jobs.to_transition_oldest"
  FROM credit_workunit WHERE transition_at IS NOT NULL
"""
# Estimates from PostgreSQL's statistics: counting would read all rows.
ROWS: Final = """
SELECT relname AS key, greatest(reltuples, 0)::bigint AS "jobs.rows"
  FROM pg_class WHERE oid IN ('credit_workunit'::regclass, 'credit_result'::regclass)
"""

# --- Results by hour ----------------------------------------------------------------------------------

MAX_STATUSES: Final = 20
"""The number of an app's exit statuses that a run of the roll-up distinguishes; programs may end with any number."""
LOCK_MARK: Final = "SELECT counted_until FROM credit_resulthourmark WHERE id = 1 FOR UPDATE"
# Adds to rows that no other run adds to, because the mark is locked. Some outputs are found unfit days later: at first
# they all count as they were reported.
ADD_RECEIVED: Final = f"""
WITH reported AS (
  SELECT date_trunc('hour', received_at, 'UTC') AS hour, app_id, app_version_id, exit_status,
         CASE outcome WHEN {Outcome.VALIDATE_ERROR} THEN {Outcome.SUCCESS} ELSE outcome END AS outcome
    FROM credit_result WHERE received_at > %(since)s AND received_at <= %(until)s),
found AS (
  SELECT hour, app_id, app_version_id, outcome,
         CASE outcome WHEN {Outcome.SUCCESS} THEN 0 ELSE coalesce(exit_status, 0) END AS status, count(*) AS n
    FROM reported GROUP BY 1, 2, 3, 4, 5),
common AS (
  SELECT app_id, status FROM (
    SELECT app_id, status, row_number() OVER (PARTITION BY app_id ORDER BY sum(n) DESC) AS place
      FROM found WHERE outcome <> {Outcome.SUCCESS} GROUP BY app_id, status) AS ranked WHERE place <= {MAX_STATUSES})
INSERT INTO credit_resulthour AS h (hour, app_id, app_version_id, outcome, exit_status, count)
SELECT f.hour, f.app_id, f.app_version_id, f.outcome,
       CASE WHEN f.outcome = {Outcome.SUCCESS} OR c.status IS NOT NULL THEN f.status END, sum(f.n)
  FROM found f LEFT JOIN common c ON c.app_id = f.app_id AND c.status = f.status
 GROUP BY 1, 2, 3, 4, 5
    ON CONFLICT (hour, app_id, app_version_id, outcome, exit_status) DO UPDATE SET count = h.count + excluded.count
"""
# Moves outputs that were found unfit meanwhile from the successes. An index contains only them.
MOVE_UNFIT: Final = f"""
WITH unfit AS (
  SELECT date_trunc('hour', received_at, 'UTC') AS hour, app_id, app_version_id, count(*) AS n
    FROM credit_result
   WHERE outcome = {Outcome.VALIDATE_ERROR} AND received_at >= %(since)s AND received_at <= %(until)s
   GROUP BY 1, 2, 3),
moved AS (
  SELECT good.id, u.hour, u.app_id, u.app_version_id, least(u.n - coalesce(known.count, 0), good.count) AS n
    FROM unfit u
    JOIN credit_resulthour good ON good.hour = u.hour AND good.app_id = u.app_id AND good.outcome = {Outcome.SUCCESS}
         AND good.app_version_id IS NOT DISTINCT FROM u.app_version_id AND good.exit_status = 0
    LEFT JOIN credit_resulthour known ON known.hour = u.hour AND known.app_id = u.app_id
         AND known.outcome = {Outcome.VALIDATE_ERROR} AND known.exit_status = 0
         AND known.app_version_id IS NOT DISTINCT FROM u.app_version_id
   WHERE u.n > coalesce(known.count, 0)),
fewer AS (UPDATE credit_resulthour h SET count = h.count - m.n FROM moved m WHERE h.id = m.id)
INSERT INTO credit_resulthour AS h (hour, app_id, app_version_id, outcome, exit_status, count)
SELECT hour, app_id, app_version_id, {Outcome.VALIDATE_ERROR}, 0, n FROM moved
    ON CONFLICT (hour, app_id, app_version_id, outcome, exit_status) DO UPDATE SET count = h.count + excluded.count
"""
FORGET_RECEIVED: Final = f"""
DELETE FROM credit_resulthour WHERE hour >= %(since)s AND outcome <> {Outcome.NO_REPLY}
"""
SET_MARK: Final = "UPDATE credit_resulthourmark SET counted_until = %s WHERE id = 1"
# Time-outs have no time of receipt. The last day is counted again, because a late report takes a time-out back.
FORGET_TIMED_OUT: Final = f"""
DELETE FROM credit_resulthour WHERE hour >= %(since)s AND outcome = {Outcome.NO_REPLY}
"""
ADD_TIMED_OUT: Final = f"""
INSERT INTO credit_resulthour AS h (hour, app_id, app_version_id, outcome, exit_status, count)
SELECT date_trunc('hour', deadline_at, 'UTC'), app_id, app_version_id, outcome, 0, count(*)
  FROM credit_result
 WHERE outcome = {Outcome.NO_REPLY} AND received_at IS NULL AND deadline_at >= %(since)s AND deadline_at <= %(until)s
 GROUP BY 1, 2, 3, 4
    ON CONFLICT (hour, app_id, app_version_id, outcome, exit_status) DO UPDATE SET count = h.count + excluded.count
"""
JOIN_HOURS: Final = """
WITH gone AS (
  DELETE FROM credit_resulthour WHERE hour < %(before)s AND hour <> date_trunc('day', hour, 'UTC') RETURNING *)
INSERT INTO credit_resulthour AS h (hour, app_id, app_version_id, outcome, exit_status, count)
SELECT date_trunc('day', hour, 'UTC'), app_id, app_version_id, outcome, exit_status, sum(count)
  FROM gone GROUP BY 1, 2, 3, 4, 5
    ON CONFLICT (hour, app_id, app_version_id, outcome, exit_status) DO UPDATE SET count = h.count + excluded.count
"""

# --- Credit -------------------------------------------------------------------------------------------

SAMPLE_SIZE: Final = 20_000
_SUSPICIOUS: Final = (ClaimRule.ABOVE_BOUND, ClaimRule.IMPOSSIBLE, ClaimRule.ZERO_ELAPSED, ClaimRule.OVERLONG)
_NEWEST: Final = f"""
WITH newest AS MATERIALIZED (
  SELECT * FROM (
    SELECT id, workunit_id, app_id, app_version_id, user_id, granted_credit, claim_rule, is_approximate, validate_state,
           {RUN_SECS} AS run_secs
      FROM credit_result r WHERE received_at > %(now)s - interval '1 day' AND received_at <= %(now)s
     ORDER BY received_at DESC LIMIT {SAMPLE_SIZE}) AS found)
"""
# The newest results of the last day. Credit is compared with the credit for the job's estimate.
SPREAD: Final = f"""
{_NEWEST}
SELECT key, tenths[2] AS "credit.median",
       CASE WHEN tenths[2] > 0 THEN 100 * (tenths[3] - tenths[1]) / tenths[2] END AS "credit.spread"
  FROM (SELECT app_version_id AS key, percentile_cont(ARRAY[0.1, 0.5, 0.9]) WITHIN GROUP (ORDER BY
                 n.granted_credit / (w.fpops_est * {CREDIT_PER_DAY / GFLOP_DAY!r}::float8)) AS tenths
          FROM newest n JOIN credit_workunit w ON w.id = n.workunit_id
         WHERE n.granted_credit IS NOT NULL AND n.app_version_id IS NOT NULL
           AND n.validate_state = {ValidateState.VALID}
         GROUP BY app_version_id HAVING count(*) >= 5) AS by_version
"""
# With fewer than 20 claims, one suspicious claim would already need attention.
CLAIMS: Final = f"""
{_NEWEST}
SELECT a.name AS key, 100.0 * count(*) FILTER (WHERE is_approximate) / count(*) AS "credit.approximate",
       CASE WHEN count(*) >= 20 THEN 100.0 / count(*) * count(*) FILTER (
         WHERE claim_rule IN ({", ".join(str(int(rule)) for rule in _SUSPICIOUS)})) END AS "credit.suspicious"
  FROM newest n JOIN credit_app a ON a.id = n.app_id WHERE claim_rule IS NOT NULL GROUP BY a.name
"""
RUN_TIMES: Final = f"""
{_NEWEST}
SELECT app_id, avg(run_secs) / 3600, min(run_secs) / 3600, max(run_secs) / 3600, count(DISTINCT user_id)
  FROM newest WHERE validate_state = {ValidateState.VALID} GROUP BY app_id
"""
ON_PROBATION: Final = """
SELECT a.name AS key, count(DISTINCT v.host_id) AS "credit.probation"
  FROM credit_hostappversion v JOIN credit_app a ON a.id = v.app_id WHERE v.scale_probation GROUP BY a.name
"""
LISTED_PAIRS: Final = """
SELECT a.name AS key, count(*) AS "credit.pairs" FROM credit_confirmingpair p JOIN credit_app a ON a.id = p.app_id
 GROUP BY a.name
"""
VERSIONS: Final = """
SELECT id AS key, total_credit AS "credit.granted", ngranted AS "credit.grants",
       CASE WHEN NOT is_deprecated THEN pfc_scale END AS "credit.scale",
       CASE WHEN NOT is_deprecated THEN pfc_avg END AS "credit.average"
  FROM credit_appversion
"""
LEAST_AVERAGES: Final = 'SELECT name AS key, min_avg_pfc AS "credit.least_average" FROM credit_app'
EXPORT: Final = """
SELECT extract(epoch FROM %(now)s - started_at) AS "export.age", nusers AS "export.users"
  FROM credit_statisticsexport WHERE finished_at IS NOT NULL AND failure = '' ORDER BY id DESC LIMIT 1
"""
FAILING_HOSTS: Final = """
SELECT v.host_id, h.given_name, h.domain_name, a.name, v.failing_share, v.error_rate, v.max_jobs_per_day
  FROM (SELECT host_id, app_id, failing_share, error_rate, max_jobs_per_day FROM credit_hostappversion
         WHERE failing_share >= 0.25 ORDER BY failing_share DESC, host_id LIMIT 20) v
  JOIN portal_host h ON h.id = v.host_id JOIN credit_app a ON a.id = v.app_id
 ORDER BY v.failing_share DESC, v.host_id
"""
# The last values of each bucket, and those before the first.
VERSION_COURSE: Final = """
SELECT DISTINCT ON (app_version_id, bucket) app_version_id, extract(epoch FROM taken_at)::float8, pfc_scale, pfc_avg
  FROM (SELECT s.app_version_id, s.taken_at, s.pfc_scale, s.pfc_avg,
               floor(extract(epoch FROM s.taken_at) / %(bucket_secs)s) AS bucket
          FROM credit_appversionsnapshot s WHERE s.taken_at > %(since)s AND s.taken_at <= %(until)s
         UNION ALL
        SELECT v.id, %(since)s, b.pfc_scale, b.pfc_avg, -1
          FROM credit_appversion v, LATERAL (
               SELECT pfc_scale, pfc_avg FROM credit_appversionsnapshot b
                WHERE b.app_version_id = v.id AND b.taken_at <= %(since)s ORDER BY b.taken_at DESC LIMIT 1) b
       ) AS found
 ORDER BY app_version_id, bucket, taken_at DESC
"""
APP_COURSE: Final = """
SELECT DISTINCT ON (app_id, bucket) app_id, extract(epoch FROM taken_at)::float8, min_avg_pfc
  FROM (SELECT s.app_id, s.taken_at, s.min_avg_pfc, floor(extract(epoch FROM s.taken_at) / %(bucket_secs)s) AS bucket
          FROM credit_appsnapshot s WHERE s.taken_at > %(since)s AND s.taken_at <= %(until)s
         UNION ALL
        SELECT a.id, %(since)s, b.min_avg_pfc, -1
          FROM credit_app a, LATERAL (
               SELECT min_avg_pfc FROM credit_appsnapshot b
                WHERE b.app_id = a.id AND b.taken_at <= %(since)s ORDER BY b.taken_at DESC LIMIT 1) b
       ) AS found
 ORDER BY app_id, bucket, taken_at DESC
"""

# --- The public status ----------------------------------------------------------------------------------

RESULTS_TO_DELETE: Final = f"""
SELECT count(*) AS "status.results_waiting_for_deletion"
  FROM credit_workunit w JOIN credit_result r ON r.workunit_id = w.id
 WHERE w.file_delete_state = {FileDeleteState.READY}
"""
# expavg_credit is as of expavg_at; its half-life is seven days.
_CREDITED: Final = """
SELECT count(*) FILTER (WHERE total_credit > 1) AS "status.{owners}_with_credit",
       count(*) FILTER (WHERE recent > 1) AS "status.{owners}_with_recent_credit"{speed}
  FROM (SELECT total_credit, expavg_credit::numeric * power(0.5, greatest(
               extract(epoch FROM %(now)s - coalesce(expavg_at, %(now)s)), 0) / 604800.0) AS recent
          FROM {table}) AS owners
"""
# One GFLOPS earns 200 credits a day.
_SPEED: Final = """,
       coalesce(sum(recent), 0) / 200 AS "status.current_floating_point_speed\""""
USERS_CREDITED: Final = _CREDITED.format(owners="users", table="credit_usercredit", speed=_SPEED)
HOSTS_CREDITED: Final = _CREDITED.format(owners="hosts", table="credit_hostcredit", speed="")
