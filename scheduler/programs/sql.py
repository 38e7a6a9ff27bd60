"""SQL of the catalogue about the queues of unsent results."""

from __future__ import annotations

from typing import Final

from credit.engine.states import ServerState
from credit.models.apps import MAX_SIZE_CLASSES
from scheduler.engine.choice.reliable import WAIT_SECS
from scheduler.engine.lanes import FIRST_OF_SIZES, FIRST_TARGETED, MAX_SHARED_LANES, MAX_TARGETED_LANES, RELIABLE

# For each app's queue: the usual size of the first jobs, the highest priority and the positions between which its jobs
# lie, and the lowest priority. Locks nothing.
READ_QUEUES: Final = f"""
SELECT a.id, q.typical, q.place[1], q.place[2],
       (SELECT l.id + l.queue_shift FROM credit_result l
         WHERE l.app_id = a.id AND l.server_state = {ServerState.UNSENT} AND l.lane = 0 AND l.priority * -1 = q.place[1]
         ORDER BY l.id + l.queue_shift DESC LIMIT 1),
       (SELECT l.priority * -1 FROM credit_result l
         WHERE l.app_id = a.id AND l.server_state = {ServerState.UNSENT} AND l.lane = 0
         ORDER BY l.app_id DESC, l.priority * -1 DESC, l.id + l.queue_shift DESC LIMIT 1)
  FROM credit_app a
 CROSS JOIN LATERAL (
       SELECT avg(w.fpops_est) AS typical, min(ARRAY[r.priority * -1, r.place]) AS place
         FROM (SELECT id + queue_shift AS place, priority, workunit_id FROM credit_result
                WHERE app_id = a.id AND server_state = {ServerState.UNSENT} AND lane = 0
                ORDER BY priority * -1, id + queue_shift LIMIT %s) r
         JOIN credit_workunit w ON w.id = r.workunit_id) q
 WHERE NOT a.is_deprecated
"""

# Reads the usual size of the first waiting jobs in each size class of each app. Locks nothing.
READ_SIZES: Final = f"""
SELECT a.id, s.lane, q.typical
  FROM credit_app a
 CROSS JOIN generate_series({FIRST_OF_SIZES}, {FIRST_OF_SIZES + MAX_SIZE_CLASSES - 1}) AS s(lane)
 CROSS JOIN LATERAL (
       SELECT avg(w.fpops_est) AS typical
         FROM (SELECT workunit_id FROM credit_result
                WHERE app_id = a.id AND lane = s.lane AND lane <> 0 AND server_state = {ServerState.UNSENT}
                ORDER BY app_id, lane, priority * -1, id + queue_shift LIMIT %s) r
         JOIN credit_workunit w ON w.id = r.workunit_id) q
 WHERE NOT a.is_deprecated AND q.typical IS NOT NULL
"""

# Reads for each app the lanes with waiting jobs, other than those of size classes; the size of one of these jobs; and
# whether its first replacements have waited long enough for a reliable computer. It skips from lane to lane by the
# index, however many jobs wait. Locks nothing.
READ_LANES: Final = f"""
SELECT a.id, l.lanes, (
       SELECT w.fpops_est FROM credit_result r JOIN credit_workunit w ON w.id = r.workunit_id
        WHERE r.app_id = a.id AND r.lane <> 0 AND r.server_state = {ServerState.UNSENT} LIMIT 1),
       (SELECT min(q.created_at) < now() - make_interval(secs => {WAIT_SECS})
          FROM (SELECT created_at FROM credit_result
                 WHERE app_id = a.id AND lane = {RELIABLE} AND lane <> 0 AND server_state = {ServerState.UNSENT}
                 ORDER BY app_id, lane, priority * -1, id + queue_shift LIMIT 20) q)
  FROM credit_app a
 CROSS JOIN LATERAL (
       SELECT array_agg(t.lane) AS lanes
         FROM (VALUES (1::bigint, {FIRST_OF_SIZES}::bigint, {MAX_SHARED_LANES}),
                      ({FIRST_TARGETED}, {2**63 - 1}, {MAX_TARGETED_LANES + 1})) AS k(low, high, most)
        CROSS JOIN LATERAL (
              WITH RECURSIVE t(lane, n) AS (
                (SELECT lane, 1 FROM credit_result
                  WHERE app_id = a.id AND lane >= k.low AND lane < k.high AND lane <> 0
                    AND server_state = {ServerState.UNSENT}
                  ORDER BY app_id, lane LIMIT 1)
                UNION ALL
                SELECT x.lane, t.n + 1
                  FROM t CROSS JOIN LATERAL (
                       SELECT lane FROM credit_result
                        WHERE app_id = a.id AND lane > t.lane AND lane < k.high AND lane <> 0
                          AND server_state = {ServerState.UNSENT}
                        ORDER BY app_id, lane LIMIT 1) x
                 WHERE t.n < k.most)
              SELECT lane FROM t) t) l
 WHERE NOT a.is_deprecated AND l.lanes IS NOT NULL
"""
