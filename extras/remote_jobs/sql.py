"""The statements that read batches and their jobs, including archived ones. They lock nothing."""

from __future__ import annotations

from typing import Final

from credit.engine.states import AssimilateState, Outcome, ServerState

BATCH_FACTS: Final = """
SELECT b.id, coalesce(w.credit, 0) + coalesce(a.credit, 0) AS credit, GREATEST(w.ended_at, a.ended_at) AS ended_at
  FROM credit_batch b
  LEFT JOIN LATERAL (SELECT sum(canonical_credit) AS credit, max(assimilated_at) AS ended_at
                       FROM credit_workunit WHERE batch_id = b.id) w ON true
  LEFT JOIN LATERAL (SELECT sum((facts->>'canonical_credit')::float8) AS credit,
                            max((facts->>'assimilated_at')::timestamptz) AS ended_at
                       FROM scheduler_archivedworkunit WHERE batch_id = b.id) a ON true
 WHERE b.id = ANY(%(ids)s)
"""
CPU_SECS: Final = """
SELECT w.batch_id, coalesce(sum(r.cpu_secs), 0)
  FROM (SELECT batch_id, canonical_result_id FROM credit_workunit
         WHERE batch_id = ANY(%(ids)s) AND canonical_result_id IS NOT NULL) w
  JOIN credit_result r ON r.id = w.canonical_result_id GROUP BY w.batch_id
 UNION ALL
SELECT a.batch_id, coalesce(sum((t.facts->>'cpu_secs')::float8), 0)
  FROM scheduler_archivedworkunit a
  JOIN scheduler_archivedtask t ON t.id = (a.facts->>'canonical_result_id')::bigint
 WHERE a.batch_id = ANY(%(ids)s) GROUP BY a.batch_id
"""
# ``since``: only jobs whose status may have changed after it. A decided one may change until it is assimilated.
JOBS: Final = f"""
SELECT w.id, w.name, coalesce(w.canonical_result_id, 0), w.error_mask, w.assimilate_state = {AssimilateState.DONE},
       r.is_out, r.was_sent, r.exit_statuses, c.cpu_secs
  FROM credit_workunit w
  LEFT JOIN credit_result c ON c.id = w.canonical_result_id
 CROSS JOIN LATERAL (
       SELECT coalesce(bool_or(server_state = {ServerState.IN_PROGRESS}), false) AS is_out,
              coalesce(bool_or(sent_at IS NOT NULL), false) AS was_sent, max(sent_at) AS sent_at,
              array_agg(exit_status ORDER BY id) FILTER (WHERE outcome = {Outcome.CLIENT_ERROR}
                                                           AND exit_status IS NOT NULL) AS exit_statuses
         FROM credit_result WHERE workunit_id = w.id) r
 WHERE w.batch_id = %(batch)s
   AND (%(since)s::timestamptz IS NULL OR w.created_at > %(since)s OR r.sent_at > %(since)s
        OR (w.canonical_result_id IS NOT NULL OR w.error_mask > 0)
           AND coalesce(w.assimilated_at, 'infinity') > %(since)s)
 UNION ALL
SELECT a.id, a.name, coalesce((a.facts->>'canonical_result_id')::bigint, 0), a.error_mask, true, false, true,
       (SELECT array_agg((t.facts->>'exit_status')::int ORDER BY t.id) FROM scheduler_archivedtask t
         WHERE t.workunit_id = a.id AND (t.facts->>'outcome')::int = {Outcome.CLIENT_ERROR}
           AND t.facts->>'exit_status' IS NOT NULL),
       (SELECT (t.facts->>'cpu_secs')::float8 FROM scheduler_archivedtask t
         WHERE t.id = (a.facts->>'canonical_result_id')::bigint)
  FROM scheduler_archivedworkunit a
 WHERE a.batch_id = %(batch)s
   AND (%(since)s::timestamptz IS NULL OR (a.facts->>'assimilated_at')::timestamptz > %(since)s)
 ORDER BY 1
"""
