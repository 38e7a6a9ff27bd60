"""The statement of the catalogue that looks at the queues of unsent results."""

from __future__ import annotations

from typing import Final

from credit.engine.states import ServerState

# Of each app's queue: the usual size of the first jobs, the highest priority and the places between which its jobs lie,
# and the lowest priority. Locks nothing.
READ_QUEUES: Final = f"""
SELECT a.id, q.typical, q.place[1], q.place[2],
       (SELECT l.id + l.queue_shift FROM credit_result l
         WHERE l.app_id = a.id AND l.server_state = {ServerState.UNSENT} AND l.priority * -1 = q.place[1]
         ORDER BY l.id + l.queue_shift DESC LIMIT 1),
       (SELECT l.priority * -1 FROM credit_result l
         WHERE l.app_id = a.id AND l.server_state = {ServerState.UNSENT}
         ORDER BY l.app_id DESC, l.priority * -1 DESC, l.id + l.queue_shift DESC LIMIT 1)
  FROM credit_app a
 CROSS JOIN LATERAL (
       SELECT avg(w.fpops_est) AS typical, min(ARRAY[r.priority * -1, r.place]) AS place
         FROM (SELECT id + queue_shift AS place, priority, workunit_id FROM credit_result
                WHERE app_id = a.id AND server_state = {ServerState.UNSENT}
                ORDER BY priority * -1, id + queue_shift LIMIT %s) r
         JOIN credit_workunit w ON w.id = r.workunit_id) q
 WHERE NOT a.is_deprecated
"""
