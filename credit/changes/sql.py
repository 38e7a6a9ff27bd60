"""SQL of resets and their effects. Records of computers are locked by id, then the version, as validators do."""

from __future__ import annotations

from typing import Final

_COLUMNS: Final = (
    "pfc_n",
    "pfc_avg",
    "clean_pfc_n",
    "clean_pfc_avg",
    "waiting_pfc_n",
    "waiting_pfc_avg",
    "recent_pfc_n",
    "recent_pfc_avg",
    "samples_at",
    "peak_flops",
    "lead_jobs",
    "et_n",
    "et_avg",
    "et_var",
    "et_q",
)
_COUNTS: Final = {"pfc_n", "clean_pfc_n", "waiting_pfc_n", "recent_pfc_n", "et_n", "et_q", "lead_jobs"}

LOCK_RECORDS: Final = "SELECT id FROM credit_hostappversion WHERE app_version_id = %s ORDER BY id FOR NO KEY UPDATE"
LOCK_VERSION: Final = "SELECT FROM credit_appversion WHERE id = %s FOR NO KEY UPDATE"
# With the version locked. LockNotAvailable if others hold a newly created record; they may be waiting for the version.
LOCK_NEW_RECORDS: Final = f"{LOCK_RECORDS} NOWAIT"
# With these and the version locked. Others may hold newer records, but without samples: passes need the version for
# that.
READ_LOCKED_RECORDS: Final = f"{LOCK_RECORDS} SKIP LOCKED"

# Locks nothing: the records are already locked. Those without samples have nothing to keep.
KEEP_RECORDS: Final = f"""
INSERT INTO credit_hostrecordsnapshot (snapshot_id, record_id, {", ".join(_COLUMNS)})
SELECT %s, id, {", ".join(_COLUMNS)} FROM credit_hostappversion
 WHERE id = ANY (%s) AND (pfc_n > 0 OR clean_pfc_n > 0 OR et_n > 0)"""

EMPTY_RECORDS: Final = f"""
UPDATE credit_hostappversion SET {", ".join(f"{name} = {0 if name in _COUNTS else 'NULL'}" for name in _COLUMNS)}
 WHERE id = ANY (%s)"""

# Records created or merged since the snapshot are not in it.
RESTORE_RECORDS: Final = f"""
UPDATE credit_hostappversion h SET {", ".join(f"{name} = s.{name}" for name in _COLUMNS)}
  FROM credit_hostrecordsnapshot s WHERE s.snapshot_id = %s AND s.record_id = h.id"""

# What an app's versions were granted between two times, from the results of the newest workunits at its end. Locks
# nothing. The limit bounds the cost if there are millions; the last column says whether some were left out.
GRANTED: Final = """
WITH recent AS (
  SELECT id, fpops_est, created_at FROM credit_workunit
   WHERE app_id = %(app)s AND created_at < %(until)s ORDER BY id DESC LIMIT %(limit)s)
SELECT r.app_version_id, count(*), sum(r.granted_credit), sum(r.granted_credit) / sum(recent.fpops_est),
       percentile_cont(ARRAY[0.1, 0.9]) WITHIN GROUP (ORDER BY r.granted_credit / recent.fpops_est),
       (SELECT count(*) = %(limit)s AND min(created_at) > %(since)s FROM recent)
  FROM recent JOIN credit_result r ON r.workunit_id = recent.id
 WHERE r.granted_credit IS NOT NULL AND r.granted_at >= %(since)s AND r.granted_at < %(until)s
 GROUP BY 1"""
