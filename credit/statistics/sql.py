"""SQL of host records, of old snapshots, of merging two records of a computer, and of check_credit."""

from __future__ import annotations

from typing import Final

from credit.engine.explanation import ClaimRule, GrantRule
from credit.engine.rules import CREDIT_PER_DAY, GFLOP_DAY
from credit.engine.states import ServerState, ValidateState
from credit.models.work import PartState

TOLERANCE: Final = 1e-9
"""Relative: sums of floats in another order differ in their last digits."""
ROUNDED: Final = 1e-12
SMALLEST: Final = "1e-300"
MAX_RAW_PFC: Final = 1e200
"""Claims of more FLOPs are not recalculated: with their factors they may overflow."""

_STATISTICS: Final = (
    "pfc_n, pfc_avg, et_n, et_avg, et_var, et_q, turnaround_n, turnaround_avg, turnaround_var, turnaround_q,"
    " consecutive_valid, scale_probation, host_scale_at, error_rate, max_jobs_per_day,"
    " clean_pfc_n, clean_pfc_avg, recent_pfc_n, recent_pfc_avg, waiting_pfc_n, waiting_pfc_avg, samples_at,"
    " failing_share, peak_flops, lead_jobs"
)
# Inserts (host, version) records by host, version and type. A record starts with the statistics of the newest older
# version's record, if there is one, of the same app, platform and plan class.
INSERT_RECORDS: Final = f"""
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
       o.host_scale_at, coalesce(o.error_rate, %s), coalesce(o.max_jobs_per_day, 0),
       coalesce(o.clean_pfc_n, 0), o.clean_pfc_avg, coalesce(o.recent_pfc_n, 0), o.recent_pfc_avg,
       coalesce(o.waiting_pfc_n, 0), o.waiting_pfc_avg, o.samples_at, coalesce(o.failing_share, 0),
       o.peak_flops, coalesce(o.lead_jobs, 0)
  FROM wanted w JOIN portal_host p ON p.id = w.host LEFT JOIN older o ON o.host = w.host AND o.version = w.version
 ORDER BY w.host, w.version, w.type
ON CONFLICT DO NOTHING
"""
# Inserts volunteers' credit by volunteer.
INSERT_USER_CREDIT: Final = """
INSERT INTO credit_usercredit (user_id, total_credit, expavg_credit)
SELECT id, 0, 0 FROM portal_user WHERE id = ANY (%s) ORDER BY id ON CONFLICT DO NOTHING
"""
# Inserts computers' credit by computer.
INSERT_HOST_CREDIT: Final = """
INSERT INTO credit_hostcredit (host_id, total_credit, expavg_credit)
SELECT id, 0, 0 FROM portal_host WHERE id = ANY (%s) ORDER BY id ON CONFLICT DO NOTHING
"""
# Locks nothing. The median of each version's hosts' averages: one host counts once, however much it claims.
HOST_MEDIANS: Final = """
SELECT app_version_id, percentile_cont(0.5) WITHIN GROUP (ORDER BY pfc_avg)
  FROM credit_hostappversion WHERE app_version_id = ANY (%s) AND pfc_n >= %s AND pfc_avg > 0 GROUP BY app_version_id
"""

# Deletes snapshots that a later one of the same UTC day follows, oldest first.
_THIN: Final = """
DELETE FROM {0} WHERE id IN (
  SELECT s.id FROM {0} s
   WHERE s.taken_at < %(before)s
     AND EXISTS (SELECT 1 FROM {0} l
                  WHERE l.{1} = s.{1} AND l.taken_at > s.taken_at
                    AND l.taken_at < date_trunc('day', s.taken_at, 'UTC') + interval '1 day')
   ORDER BY s.taken_at LIMIT %(limit)s)
"""
THIN_SNAPSHOTS: Final = (
    _THIN.format("credit_appsnapshot", "app_id"),
    _THIN.format("credit_appversionsnapshot", "app_version_id"),
)

# Merges two records of one computer. Locks both by id, then by id the workunits of the older one's results and those
# that wait for it alone (`scheduler.engine.lanes`), moves the results, and locks both computers' (host, version)
# records by id.
MERGE_RESULTS: Final = (
    "SELECT FROM portal_host WHERE id IN (%(older)s, %(newer)s) ORDER BY id FOR NO KEY UPDATE",
    f"""SELECT FROM credit_workunit w
 WHERE w.id IN (
       SELECT workunit_id FROM credit_result WHERE host_id = %(older)s
        UNION ALL
       SELECT workunit_id FROM credit_result
        WHERE app_id = ANY (ARRAY(SELECT id FROM credit_app)) AND lane = 1::bigint << 60 | %(older)s AND lane <> 0
          AND server_state = {ServerState.UNSENT.value})
 ORDER BY w.id FOR NO KEY UPDATE""",
    "UPDATE credit_result SET host_id = %(newer)s WHERE host_id = %(older)s",
    "SELECT FROM credit_hostappversion WHERE host_id IN (%(older)s, %(newer)s) ORDER BY id FOR NO KEY UPDATE",
)
# Changes (host, version) records that are locked.
MERGE_RECORDS: Final = (
    # If both records know a version, the statistics of the remaining record stay: they are newer.
    """DELETE FROM credit_hostappversion o USING credit_hostappversion n
 WHERE o.host_id = %(older)s AND n.host_id = %(newer)s
   AND (n.app_version_id = o.app_version_id
        OR n.app_version_id IS NULL AND o.app_version_id IS NULL AND n.app_id = o.app_id
           AND n.processor_type = o.processor_type)""",
    "UPDATE credit_hostappversion SET host_id = %(newer)s WHERE host_id = %(older)s",
)

# The statements of check_credit lock nothing.

# What results earned each owner here, by the column {0}; archived results are added by three arrays, and opening
# balances by {1}, a SELECT of the same columns.
_EARNED: Final = """
WITH earned AS (
  SELECT owner, sum(count)::bigint AS count, sum(credit) AS credit
    FROM (SELECT {0} AS owner, count(granted_credit) AS count,
                 sum(greatest(coalesce(granted_credit, 0), partial_credit)) AS credit
            FROM credit_result
           WHERE {0} IS NOT NULL AND (granted_credit IS NOT NULL OR partial_credit > 0)
             AND grant_rule IS DISTINCT FROM CARRIED_OVER GROUP BY 1
           UNION ALL
          SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::float8[])
           UNION ALL
          {1}) r
   GROUP BY owner)
""".replace("CARRIED_OVER", str(GrantRule.CARRIED_OVER.value))
_DIFFERS: Final = f"""
abs(coalesce(c.total_credit, 0) - coalesce(e.credit, 0)) > {TOLERANCE} * greatest(e.credit, c.total_credit, 1)
"""
_OWNER_TOTALS: Final = f"""{_EARNED}
SELECT coalesce(e.owner, c.{{0}}), c.total_credit, e.credit
  FROM earned e FULL JOIN {{2}} c ON c.{{0}} = e.owner WHERE {_DIFFERS} ORDER BY 1
"""
_VERSION_TOTALS: Final = f"""{_EARNED}
SELECT c.id, c.total_credit, c.ngranted, coalesce(e.credit, 0), coalesce(e.count, 0)
  FROM credit_appversion c LEFT JOIN earned e ON e.owner = c.id
 WHERE c.ngranted <> coalesce(e.count, 0) OR {_DIFFERS} ORDER BY 1
"""
_USER_OPENINGS: Final = "SELECT user_id, 0, total_credit FROM credit_useropening WHERE total_credit > 0"
_HOST_OPENINGS: Final = """
SELECT coalesce(h.merged_into_id, h.id), 0, o.total_credit
  FROM credit_hostopening o JOIN portal_host h ON h.id = o.host_id WHERE o.total_credit > 0"""
WRONG_USER_TOTALS: Final = _OWNER_TOTALS.format("user_id", _USER_OPENINGS, "credit_usercredit")
WRONG_HOST_TOTALS: Final = _OWNER_TOTALS.format("host_id", _HOST_OPENINGS, "credit_hostcredit")
WRONG_VERSION_TOTALS: Final = _VERSION_TOTALS.format("app_version_id", "SELECT NULL::bigint, 0, 0::float8 WHERE false")
# What foreign keys would prevent, if results had them (credit.models.Result).
DANGLING_RESULTS: Final = """
SELECT r.id, 'volunteer ' || r.user_id FROM credit_result r
 WHERE r.user_id IS NOT NULL AND NOT EXISTS (SELECT FROM portal_user u WHERE u.id = r.user_id)
 UNION ALL
SELECT r.id, 'computer ' || r.host_id FROM credit_result r
 WHERE r.host_id IS NOT NULL AND NOT EXISTS (SELECT FROM portal_host h WHERE h.id = r.host_id)
 UNION ALL
SELECT r.id, 'version ' || r.app_version_id FROM credit_result r
 WHERE r.app_version_id IS NOT NULL AND NOT EXISTS (SELECT FROM credit_appversion v WHERE v.id = r.app_version_id)
 ORDER BY 1, 2
"""
WRONG_CANONICAL_RESULTS: Final = f"""
SELECT w.id, CASE WHEN r.id IS NULL OR r.workunit_id <> w.id THEN 'its canonical result is none of its own'
                  WHEN r.validate_state <> {ValidateState.VALID.value} THEN 'its canonical result is not valid'
                  ELSE 'its canonical result was granted other credit than the workunit has' END
  FROM credit_workunit w LEFT JOIN credit_result r ON r.id = w.canonical_result_id
 WHERE w.canonical_result_id IS NOT NULL
   AND (r.id IS NULL OR r.workunit_id <> w.id OR r.validate_state <> {ValidateState.VALID.value}
        OR abs(coalesce(r.granted_credit, -1) - coalesce(w.canonical_credit, -1))
           > {ROUNDED} * greatest(w.canonical_credit, 1))
 ORDER BY 1
"""
WRONG_GRANTS: Final = f"""
SELECT r.id, CASE WHEN r.validate_state = {ValidateState.VALID.value}
                  THEN 'it is valid, but was not granted its workunit''s credit'
                  ELSE 'it was granted credit, but is not valid' END
  FROM credit_result r JOIN credit_workunit w ON w.id = r.workunit_id
 WHERE (r.validate_state = {ValidateState.VALID.value}
        AND (r.granted_credit IS NULL OR r.granted_at IS NULL OR w.canonical_credit IS NULL
             OR abs(r.granted_credit - w.canonical_credit) > {ROUNDED} * greatest(w.canonical_credit, 1)))
    OR (r.validate_state <> {ValidateState.VALID.value} AND r.granted_credit IS NOT NULL)
 ORDER BY 1
"""
# Results whose parts are all stored: earlier ones are not.
WRONG_PARTS: Final = f"""
SELECT r.id, r.partial_credit, p.credit
  FROM (SELECT result_id, min(from_secs) AS begin,
               coalesce(sum(credit) FILTER (WHERE state <> {PartState.TAKEN_BACK.value}), 0) AS credit
          FROM credit_resultpart GROUP BY 1) p
  JOIN credit_result r ON r.id = p.result_id
 WHERE p.begin = 0 AND abs(p.credit - r.partial_credit) > {TOLERANCE} * greatest(r.partial_credit, 1) ORDER BY 1
"""
# In decimals, which neither overflow nor underflow: no stored number, not even NaN or infinity, can fail the statement.
WRONG_CLAIMS: Final = f"""
WITH numbers AS (
  SELECT r.id, r.claim_rule, w.fpops_est::numeric, r.claimed_pfc::numeric, r.claimed_credit::numeric,
         coalesce(r.min_avg_pfc, 1)::numeric AS min_avg_pfc, coalesce(r.raw_pfc, 0)::numeric AS raw_pfc,
         coalesce(r.version_scale, 1)::numeric AS version_scale, coalesce(r.host_scale, 1)::numeric AS host_scale,
         r.partial_credit::numeric
    FROM credit_result r JOIN credit_workunit w ON w.id = r.workunit_id
   WHERE r.claim_rule IS NOT NULL AND r.claim_rule <> {ClaimRule.LEFT_OUT.value}
     AND (abs(coalesce(r.raw_pfc, 0)) < {MAX_RAW_PFC:g}::float8 OR r.raw_pfc = 'NaN')),
claimed AS (
  SELECT id, claimed_pfc, claimed_credit,
         CASE WHEN claim_rule = ANY (%s) THEN min_avg_pfc * fpops_est
              ELSE raw_pfc * version_scale * host_scale
                   -- The other credit systems count whole jobs.
                   + CASE WHEN claim_rule < {ClaimRule.PEAK_FLOPS.value} THEN partial_credit ELSE 0 END
                     * {GFLOP_DAY:.0f} / {CREDIT_PER_DAY} END AS pfc
    FROM numbers)
SELECT id, claimed_pfc, pfc FROM claimed
 WHERE claimed_pfc IS NULL OR claimed_credit IS NULL
    -- PostgreSQL treats NaN as greater than infinity, and equal to itself.
    OR greatest(abs(claimed_pfc), abs(claimed_credit), abs(pfc)) >= 'Infinity'
    OR abs(claimed_pfc - pfc) > {TOLERANCE} * greatest(abs(pfc), {SMALLEST})
    OR abs(claimed_credit - claimed_pfc * {CREDIT_PER_DAY} / {GFLOP_DAY:.0f})
       > {TOLERANCE} * greatest(abs(claimed_credit), {SMALLEST})
 ORDER BY 1
"""

BUILD_SPEEDS: Final = """
WITH measured AS (
  SELECT r.app_version_id AS version, r.host_id, r.et_n, r.et_avg, coalesce(r.et_var, 0) AS et_var
    FROM unnest(%(versions)s::bigint[]) AS v(id)
   CROSS JOIN LATERAL (
         SELECT * FROM credit_hostappversion
          WHERE app_version_id = v.id AND et_n > 0 AND et_avg > 0 ORDER BY id DESC LIMIT %(most_records)s) r),
modelled AS (
  SELECT m.*, CASE %(type)s WHEN 'CPU' THEN h.p_model
              ELSE (SELECT c ->> 'name' FROM jsonb_array_elements(h.coprocs) c
                     WHERE c ->> 'type' = %(type)s LIMIT 1) END AS model
    FROM measured m JOIN portal_host h ON h.id = m.host_id),
summed AS (
  SELECT coalesce(model, '') AS model, version, count(*) AS ncomputers, sum(et_n)::bigint AS nsamples,
         sum(et_n * et_avg) / sum(et_n) AS secs, sum(et_n * (et_var + et_avg ^ 2)) / sum(et_n) AS square
    FROM modelled GROUP BY 1, 2),
models AS (
  SELECT model, sum(nsamples) AS njobs FROM summed GROUP BY model ORDER BY njobs DESC, model LIMIT %(most_models)s)
SELECT model, version, ncomputers, nsamples, secs, square - secs ^ 2
  FROM summed JOIN models USING (model) ORDER BY njobs DESC, model, secs, version
"""
"""For each model of processor or GPU and each of these versions: computers, run times, and the average and variance of
the seconds per estimated FLOP, over all run times. The models with the most run times first, the fastest version first.
"""
