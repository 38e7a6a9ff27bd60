"""SQL of pages about credit; none locks anything."""

from __future__ import annotations

from typing import Final

from credit.app_history.sql import RUN_SECS

# The outcomes of an app's newest jobs, for each version and type of processor.
RECENT_JOBS: Final = f"""
WITH recent AS (SELECT id FROM credit_workunit WHERE app_id = %s ORDER BY id DESC LIMIT %s)
SELECT r.app_version_id, r.processor_type, count(*),
       sum(r.granted_credit),
       sum({RUN_SECS}),
       count(*) FILTER (WHERE r.is_approximate)
FROM recent JOIN credit_result r ON r.workunit_id = recent.id
WHERE r.granted_credit IS NOT NULL AND r.claim_rule IS NOT NULL
GROUP BY 1, 2
"""
