"""SQL of a validator's pass: each statement takes or returns all rows at once, one array for each column.

Returned columns are named like the fields of `credit.validator.reads`.

Locks are taken in this order (docs/explanation/validator.md): workunits, (host, version) records, volunteers' credit,
computers' credit, versions. All locks of one kind are taken in key order, so passes wait for each other but never in a
circle. The updates change rows that the pass has locked, and results of workunits that it has locked.
"""

from __future__ import annotations

from typing import Final

from credit.engine.facts import ProcessorType
from credit.engine.states import Outcome, ServerState, ValidateState
from credit.validator.binary import Statement, Write

# Columns store a type of processor as its number in this list, from 1.
PROCESSOR_TYPES: Final = tuple(type_.value for type_ in ProcessorType)

# Locks waiting workunits by id, and skips those that another pass has locked. The app is given as a range: with an
# equality the planner may walk through all workunits by their primary key instead of the index of waiting ones.
LOCK_WORKUNITS: Final = Statement(
    """WITH batch AS (
  SELECT id, fpops_est, fpops_bound, min_quorum, target_nresults, canonical_result_id, canonical_credit,
         delay_bound_secs, credit, confirm_until, is_own
    FROM credit_workunit
   WHERE app_id >= $1 AND app_id <= $1 AND need_validate AND (validate_after IS NULL OR validate_after <= $3)
   ORDER BY app_id, id LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED)
SELECT array_agg(id) AS id, array_agg(fpops_est) AS fpops_est, array_agg(fpops_bound) AS fpops_bound,
       array_agg(min_quorum) AS min_quorum, array_agg(target_nresults) AS target_nresults,
       array_agg(coalesce(canonical_result_id, 0)) AS canonical_id,
       array_agg(coalesce(canonical_credit, 'NaN')) AS canonical_credit,
       array_agg(delay_bound_secs::int8) AS delay_bound_secs, array_agg(coalesce(credit, 'NaN')) AS given_credit,
       array_agg(coalesce(confirm_until, '-infinity')) AS confirm_until, array_agg(is_own) AS is_own
  FROM batch""",
    "int8 int8 timestamptz",
)

# Changes workunits that are locked. Those with a result in progress that was sent before the end of their wait are
# examined again when it is due. Later ones are not waited for, because then the wait would have no limit.
HOLD_WORKUNITS: Final = Statement(
    f"""WITH held AS (
  UPDATE credit_workunit w SET validate_after = r.due_at, validate_fault = ''
    FROM (SELECT workunit_id, max(deadline_at) AS due_at
            FROM credit_result r JOIN credit_workunit u ON u.id = r.workunit_id
           WHERE r.workunit_id = ANY ($1) AND server_state = {ServerState.IN_PROGRESS.value} AND deadline_at > $2
             AND sent_at <= u.confirm_until GROUP BY workunit_id) r
   WHERE w.id = r.workunit_id RETURNING w.id)
SELECT array_agg(id) AS id FROM held""",
    "int8[] timestamptz",
)

# Locks nothing, because their workunits are locked. Reads results that were reported as a success and not found wrong.
READ_RESULTS: Final = Statement(
    f"""SELECT array_agg(id) AS id, array_agg(workunit_id) AS workunit_id, array_agg(coalesce(host_id, 0)) AS host_id,
       array_agg(coalesce(user_id, 0)) AS user_id, array_agg(coalesce(app_version_id, 0)) AS version_id,
       array_agg(array_position(ARRAY{list(PROCESSOR_TYPES)}::varchar[], processor_type)::int2) AS type,
       array_agg(validate_state) AS validate_state,
       array_agg(coalesce(peak_flops, 'NaN')) AS peak_flops, array_agg(coalesce(sent_at, received_at)) AS sent_at,
       array_agg(received_at) AS received_at, array_agg(coalesce(elapsed_secs, 'NaN')) AS elapsed_secs,
       array_agg(coalesce(cpu_secs, 'NaN')) AS cpu_secs,
       array_agg(coalesce(fpops_cumulative, 'NaN')) AS fpops_cumulative,
       array_agg(coalesce(fpops_per_cpu_sec, 'NaN')) AS fpops_per_cpu_sec,
       array_agg(is_runtime_outlier) AS is_runtime_outlier, array_agg(coalesce(p_fpops, 'NaN')) AS p_fpops,
       array_agg(partial_elapsed_secs) AS partial_elapsed_secs, array_agg(partial_credit) AS partial_credit,
       array_agg(output_digest) AS digest
  FROM credit_result
 WHERE workunit_id = ANY ($1) AND outcome = {Outcome.SUCCESS.value}
   AND validate_state IN ({ValidateState.INIT.value}, {ValidateState.VALID.value},
                          {ValidateState.INCONCLUSIVE.value})""",
    "int8[]",
)

# Locks (host, version) records by id. A record of a released version is found by the version, one of a host's own
# programs (anonymous platform) by app and type of processor.
LOCK_RECORDS: Final = Statement(
    f"""WITH wanted AS (
  SELECT h.id, k.place FROM unnest($1, $2, $3) WITH ORDINALITY k(host, version, type, place)
    JOIN credit_hostappversion h ON h.host_id = k.host AND h.app_version_id = k.version
  UNION ALL
  SELECT h.id, k.place FROM unnest($1, $2, $3) WITH ORDINALITY k(host, version, type, place)
    JOIN credit_hostappversion h ON h.host_id = k.host AND h.app_id = $4 AND h.app_version_id IS NULL
     AND h.processor_type = (ARRAY{list(PROCESSOR_TYPES)}::varchar[])[k.type]
   WHERE k.version = 0)
SELECT array_agg(place) AS place, array_agg(id) AS id, array_agg(pfc_n) AS pfc_n,
       array_agg(coalesce(pfc_avg, 'NaN')) AS pfc_avg, array_agg(et_n) AS et_n,
       array_agg(coalesce(et_avg, 'NaN')) AS et_avg, array_agg(coalesce(et_var, 'NaN')) AS et_var,
       array_agg(et_q) AS et_q, array_agg(turnaround_n) AS turnaround_n,
       array_agg(coalesce(turnaround_avg, 'NaN')) AS turnaround_avg,
       array_agg(coalesce(turnaround_var, 'NaN')) AS turnaround_var, array_agg(turnaround_q) AS turnaround_q,
       array_agg(scale_probation) AS scale_probation,
       array_agg(coalesce(host_scale_at, '-infinity')) AS host_scale_at, array_agg(error_rate) AS error_rate,
       array_agg(consecutive_valid::int8) AS consecutive_valid,
       array_agg(max_jobs_per_day::int8) AS max_jobs_per_day, array_agg(clean_pfc_n) AS clean_n,
       array_agg(coalesce(clean_pfc_avg, 'NaN')) AS clean_avg, array_agg(recent_pfc_n) AS recent_n,
       array_agg(coalesce(recent_pfc_avg, 'NaN')) AS recent_avg, array_agg(waiting_pfc_n) AS waiting_n,
       array_agg(coalesce(waiting_pfc_avg, 'NaN')) AS waiting_avg,
       array_agg(coalesce(samples_at, '-infinity')) AS samples_at, array_agg(failing_share) AS failing_share,
       array_agg(coalesce(peak_flops, 'NaN')) AS peak_flops, array_agg(lead_jobs) AS lead_jobs
  FROM (SELECT h.*, w.place FROM credit_hostappversion h JOIN wanted w ON w.id = h.id
         ORDER BY h.id FOR NO KEY UPDATE OF h) locked""",
    "int8[] int8[] int2[] int8",
)
# Locks nothing. For each of these results, the records of its host for newer versions of its program.
READ_NEWER: Final = Statement(
    """SELECT array_agg(r.host_id) AS host_id, array_agg(r.app_version_id) AS version_id
  FROM unnest($1, $2) k(host, version)
  JOIN credit_appversion o ON o.id = k.version
  JOIN credit_appversion n ON n.app_id = o.app_id AND n.platform_id = o.platform_id AND n.plan_class = o.plan_class
   AND n.version_num > o.version_num
  JOIN credit_hostappversion r ON r.host_id = k.host AND r.app_version_id = n.id""",
    "int8[] int8[]",
)
# Locks volunteers' credit by volunteer.
LOCK_USERS: Final = Statement(
    """SELECT array_agg(user_id) AS id, array_agg(total_credit) AS total, array_agg(expavg_credit) AS expavg,
       array_agg(coalesce(expavg_at, '-infinity')) AS expavg_at
  FROM (SELECT * FROM credit_usercredit WHERE user_id = ANY ($1) ORDER BY user_id FOR NO KEY UPDATE) locked""",
    "int8[]",
)
# Locks computers' credit by computer.
LOCK_HOSTS: Final = Statement(
    """SELECT array_agg(host_id) AS id, array_agg(total_credit) AS total, array_agg(expavg_credit) AS expavg,
       array_agg(coalesce(expavg_at, '-infinity')) AS expavg_at, array_agg(p_fpops) AS p_fpops
  FROM (SELECT c.*, coalesce(h.p_fpops, 'NaN') AS p_fpops
          FROM credit_hostcredit c JOIN portal_host h ON h.id = c.host_id
         WHERE c.host_id = ANY ($1) ORDER BY c.host_id FOR NO KEY UPDATE OF c) locked""",
    "int8[]",
)

UPDATE_RESULTS: Final = Write(
    """UPDATE credit_result r
   SET validate_state = n.validate_state, claim_rule = n.claim_rule, raw_pfc = n.raw_pfc, claimed_pfc = n.claimed_pfc,
       claimed_credit = n.claimed_credit, is_approximate = n.is_approximate, version_scale = n.version_scale,
       host_scale = n.host_scale, on_probation = n.on_probation, version_pfc_n = n.version_pfc_n,
       version_pfc_avg = n.version_pfc_avg, host_pfc_n = n.host_pfc_n, host_pfc_avg = n.host_pfc_avg,
       min_avg_pfc = n.min_avg_pfc, grant_rule = n.grant_rule, granted_credit = n.granted_credit,
       granted_at = CASE WHEN n.granted_credit IS NOT NULL THEN :now::timestamptz END
  FROM :rows
 WHERE r.id = n.id""",
    "id int8[], validate_state int2[], grant_rule int2?[], granted_credit float8[], claim_rule int2?[],"
    " raw_pfc float8[], claimed_pfc float8[], claimed_credit float8[], is_approximate bool?[], version_scale float8[],"
    " host_scale float8[], on_probation bool?[], version_pfc_n int8?[], version_pfc_avg float8[], host_pfc_n int8?[],"
    " host_pfc_avg float8[], min_avg_pfc float8[], now timestamptz",
)
UPDATE_WORKUNITS: Final = Write(
    """UPDATE credit_workunit w
   SET need_validate = false, validate_fault = '', validate_after = NULL, confirm_until = NULL, transition_at = :now,
       canonical_result_id = coalesce(n.canonical_id, w.canonical_result_id),
       canonical_credit = coalesce(n.credit, w.canonical_credit)
  FROM :rows
 WHERE w.id = n.id""",
    "id int8[], canonical_id int8?[], credit float8[], now timestamptz",
)
UPDATE_RECORDS: Final = Write(
    """UPDATE credit_hostappversion h
   SET pfc_n = n.pfc_n, pfc_avg = n.pfc_avg, et_n = n.et_n, et_avg = n.et_avg, et_var = n.et_var, et_q = n.et_q,
       turnaround_n = n.turnaround_n, turnaround_avg = n.turnaround_avg, turnaround_var = n.turnaround_var,
       turnaround_q = n.turnaround_q, scale_probation = n.scale_probation, host_scale_at = n.host_scale_at,
       error_rate = n.error_rate, consecutive_valid = n.consecutive_valid, max_jobs_per_day = n.max_jobs_per_day,
       clean_pfc_n = n.clean_pfc_n, clean_pfc_avg = n.clean_pfc_avg,
       recent_pfc_n = n.recent_pfc_n, recent_pfc_avg = n.recent_pfc_avg, waiting_pfc_n = n.waiting_pfc_n,
       waiting_pfc_avg = n.waiting_pfc_avg, samples_at = n.samples_at, failing_share = n.failing_share,
       peak_flops = n.peak_flops, lead_jobs = n.lead_jobs
  FROM :rows
 WHERE h.id = n.id""",
    "id int8[], pfc_n int8[], pfc_avg float8[], et_n int8[], et_avg float8[], et_var float8[], et_q float8[],"
    " turnaround_n int8[], turnaround_avg float8[], turnaround_var float8[], turnaround_q float8[],"
    " scale_probation bool[], host_scale_at timestamptz[], error_rate float8[], consecutive_valid int8[],"
    " max_jobs_per_day int8[], clean_pfc_n int8[], clean_pfc_avg float8[], recent_pfc_n int8[],"
    " recent_pfc_avg float8[], waiting_pfc_n int8[], waiting_pfc_avg float8[], samples_at timestamptz[],"
    " failing_share float8[], peak_flops float8[], lead_jobs float8[]",
)
_SUMS: Final = "id int8[], total float8[], expavg float8[], expavg_at timestamptz[]"
UPDATE_USERS: Final = Write(
    """UPDATE credit_usercredit c
   SET total_credit = n.total, expavg_credit = n.expavg, expavg_at = n.expavg_at
  FROM :rows
 WHERE c.user_id = n.id""",
    _SUMS,
)
UPDATE_HOSTS: Final = Write(
    """UPDATE credit_hostcredit c
   SET total_credit = n.total, expavg_credit = n.expavg, expavg_at = n.expavg_at
  FROM :rows
 WHERE c.host_id = n.id""",
    _SUMS,
)

# Locks versions by id.
LOCK_VERSIONS: Final = Statement(
    """SELECT array_agg(id) AS id, array_agg(pfc_n) AS pfc_n, array_agg(coalesce(pfc_avg, 'NaN')) AS pfc_avg,
       array_agg(expavg_credit) AS expavg, array_agg(coalesce(expavg_at, '-infinity')) AS expavg_at,
       array_agg(total_credit) AS total, array_agg(ngranted) AS ngranted
  FROM (SELECT * FROM credit_appversion WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE) locked""",
    "int8[]",
)
UPDATE_VERSIONS: Final = Write(
    """UPDATE credit_appversion v
   SET pfc_n = n.pfc_n, pfc_avg = n.pfc_avg, expavg_credit = n.expavg, expavg_at = n.expavg_at,
       total_credit = n.total, ngranted = n.ngranted
  FROM :rows
 WHERE v.id = n.id""",
    "id int8[], pfc_n int8[], pfc_avg float8[], expavg float8[], expavg_at timestamptz[], total float8[],"
    " ngranted int8[]",
)
# Its arrays are binary parameters: as literals, twice as many digits would be sent and parsed.
LOG_PASS: Final = Statement(
    """INSERT INTO credit_loggedpass
       (app_id, at, is_feeder, nworkunits, min_avg_pfc, versions, records, workunits, results)
VALUES ($1, $2, false, $3, nullif($4, 'NaN'), $5, $6, $7, $8)""",
    "int8 timestamptz int8 float8 bytea bytea bytea bytea",
)
