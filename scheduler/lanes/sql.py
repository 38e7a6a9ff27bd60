"""SQL of lanes."""

from __future__ import annotations

from typing import Final

from credit.engine.states import Outcome, ServerState
from scheduler.engine.lanes import FIRST_OF_SIZES, FIRST_TARGETED, LaneKind

# Reads the index of lanes, without the jobs that any computer may eventually have. Locks nothing.
WAITING_LANES: Final = f"""
SELECT app_id, lane, count(*), min(created_at) FROM credit_result
 WHERE server_state = {ServerState.UNSENT} AND lane <> 0
   AND NOT (lane >= {FIRST_OF_SIZES} AND lane < {FIRST_TARGETED})
 GROUP BY app_id, lane ORDER BY min(created_at), app_id, lane LIMIT %s
"""
# Counts, by the index of lanes alone, the jobs that wait in the size classes of these apps. Locks nothing.
WAITING_SIZES: Final = f"""
SELECT app_id, lane - {FIRST_OF_SIZES}, count(*) FROM credit_result
 WHERE app_id = ANY (%s) AND server_state = {ServerState.UNSENT} AND lane <> 0
   AND lane >= {FIRST_OF_SIZES} AND lane < {FIRST_TARGETED}
 GROUP BY app_id, lane
"""
LOCK_WORKUNITS: Final = f"""
SELECT id, app_version_num, size_class FROM credit_workunit WHERE id IN (
       SELECT workunit_id FROM credit_result
        WHERE app_id = %(app)s AND lane = %(lane)s AND lane <> 0 AND server_state = {ServerState.UNSENT}
        LIMIT %(limit)s)
 ORDER BY id FOR NO KEY UPDATE
"""
"""Locks, by id, workunits with jobs waiting in a lane."""
FREE: Final = """
WITH freed AS (
  UPDATE credit_workunit w
     SET hr_class = 0, bound_version_id = NULL, is_own = false, app_version_num = n.version_num, lane = n.lane
    FROM unnest(%(ids)s::bigint[], %(version_nums)s::int[], %(lanes)s::bigint[]) AS n(id, version_num, lane)
   WHERE w.id = n.id RETURNING w.id, w.lane)
UPDATE credit_result r SET lane = freed.lane FROM freed WHERE r.workunit_id = freed.id
"""
"""Changes workunits that are locked, and their results."""
END: Final = f"""
WITH ended AS (
  UPDATE credit_result SET server_state = {ServerState.OVER}, outcome = {Outcome.COULD_NOT_SEND}
   WHERE workunit_id = ANY (%(ids)s) AND server_state = {ServerState.UNSENT} RETURNING workunit_id)
UPDATE credit_workunit w SET transition_at = least(w.transition_at, %(now)s)
 WHERE w.id IN (SELECT workunit_id FROM ended)
"""
"""Changes the waiting results of locked workunits. The transitioner then ends the workunits with the reason."""
_TARGET: Final = f"(r.lane & {FIRST_TARGETED - 1})"
# The lanes of targets that no longer exist.
GONE_LANES: Final = f"""
SELECT DISTINCT r.app_id, r.lane FROM credit_result r
 WHERE r.server_state = {ServerState.UNSENT} AND r.lane <> 0 AND r.lane >= {FIRST_TARGETED}
   AND CASE r.lane >> 60
       WHEN {LaneKind.COMPUTER} THEN NOT EXISTS (
            SELECT FROM portal_host h JOIN portal_user u ON u.id = h.owner_id
             WHERE h.id = {_TARGET} AND h.merged_into_id IS NULL AND u.is_active)
       WHEN {LaneKind.PERSON} THEN NOT EXISTS (SELECT FROM portal_user u WHERE u.id = {_TARGET} AND u.is_active)
       ELSE NOT EXISTS (SELECT FROM credit_team t WHERE t.id = {_TARGET}) END
"""
LOCK_TARGETED: Final = f"""
SELECT id FROM credit_workunit WHERE lane = ANY (%(lanes)s) AND lane >= {FIRST_TARGETED} ORDER BY id FOR NO KEY UPDATE
"""
"""Locks the workunits for targets by id, whatever their state, because more results of them may be created."""
MOVE_TO_HOST: Final = """
WITH moved AS (UPDATE credit_workunit SET lane = %(newer)s WHERE id = ANY (%(ids)s))
UPDATE credit_result SET lane = %(newer)s WHERE workunit_id = ANY (%(ids)s)
"""
"""Changes workunits that are locked, and their results."""
FORGET_TARGETS: Final = f"""
WITH forgotten AS (UPDATE credit_workunit SET lane = lane & {~(FIRST_TARGETED - 1)} WHERE id = ANY (%(ids)s))
UPDATE credit_result SET lane = lane & {~(FIRST_TARGETED - 1)}
 WHERE workunit_id = ANY (%(ids)s) AND lane >= {FIRST_TARGETED}
"""
"""Keeps only the kinds of lanes: the jobs are then for number 0, which nobody has.

Changes workunits that are locked, and their results.
"""
