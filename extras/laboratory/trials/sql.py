"""The simulation's writes in place of the scheduler and the transitioner.

Only one process simulates, so the order of locks does not matter here.
"""

from __future__ import annotations

from typing import Final

from credit.engine.facts import ProcessorType
from credit.engine.states import Outcome

# Inserts (host, version) records by host, app, version and type, as the scheduler does when it sends jobs.
INSERT_HOST_RECORDS: Final = f"""
INSERT INTO credit_hostappversion (host_id, app_id, app_version_id, processor_type, pfc_n, et_n, et_q, turnaround_n,
       turnaround_q, consecutive_valid, scale_probation, host_scale_at, error_rate, max_jobs_per_day)
SELECT r.host_id, r.app_id, r.app_version_id, CASE WHEN r.app_version_id IS NULL THEN r.processor_type
       ELSE '{ProcessorType.CPU.value}' END,
       0, 0, 0, 0, 0, 0, true, min(r.sent_at + make_interval(secs => w.delay_bound_secs)), 0.1, 0
  FROM credit_result r JOIN credit_workunit w ON w.id = r.workunit_id
 WHERE r.workunit_id = ANY (%s)
 GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
ON CONFLICT DO NOTHING
"""
# Changes the records of hosts whose jobs failed, as the transitioner does.
COUNT_FAILURES: Final = f"""
UPDATE credit_hostappversion h
   SET scale_probation = true, consecutive_valid = 0, error_rate = least(1, h.error_rate + 0.1 * f.n),
       host_scale_at = f.failed_at, failing_share = 1 - (1 - h.failing_share) * power(0.99, f.n)
  FROM (SELECT r.host_id, r.app_version_id, count(*) AS n,
               max(r.received_at + make_interval(secs => w.delay_bound_secs)) AS failed_at
          FROM credit_result r JOIN credit_workunit w ON w.id = r.workunit_id
         WHERE r.workunit_id = ANY (%s) AND r.outcome = {Outcome.CLIENT_ERROR.value} GROUP BY 1, 2) f
 WHERE h.host_id = f.host_id AND h.app_version_id = f.app_version_id
"""
