"""SQL for the tasks that clients list."""

from typing import Final

# Copies new lists into the followed tasks; returns how many lists. Locks the lists, skipping those that are being
# written; and their ledgers, but only against erasing and merging, so no report waits; then the followed tasks. A task
# in the list is asked about after a day. One that has left it may be done, so it is asked about at once. Where a
# computer has too many, the oldest decided ones make room.
FOLLOW: Final = """
WITH lists AS MATERIALIZED (
  SELECT t.host_id, t.at, t.tasks
    FROM accounting_tasklist t JOIN accounting_hostledger l ON l.host_id = t.host_id
   WHERE t.followed_at IS NULL OR t.followed_at < t.at
   ORDER BY t.at LIMIT %(lists)s
     FOR NO KEY UPDATE OF t SKIP LOCKED FOR KEY SHARE OF l SKIP LOCKED),
listed AS MATERIALIZED (
  SELECT l.host_id, l.at, p.id AS project_id, e.task->>'name' AS name, e.n
    FROM lists l CROSS JOIN LATERAL jsonb_array_elements(l.tasks) WITH ORDINALITY AS e(task, n)
    JOIN accounting_project p ON p.id = (e.task->>'project')::bigint),
still AS (
  UPDATE accounting_followedtask f
     SET last_seen_at = l.at, asks = 0, unknowns = 0,
         ask_after = CASE WHEN f.ask_after IS NOT NULL THEN l.at + %(asked_after_secs)s * interval '1 second' END
    FROM listed l
   WHERE f.host_id = l.host_id AND f.project_id = l.project_id AND f.name = l.name),
gone AS (
  UPDATE accounting_followedtask f SET ask_after = least(f.ask_after, l.at)
    FROM lists l
   WHERE f.host_id = l.host_id AND f.ask_after IS NOT NULL AND f.asks = 0
     AND NOT EXISTS (SELECT FROM listed o
                      WHERE o.host_id = f.host_id AND o.project_id = f.project_id AND o.name = f.name)),
known AS MATERIALIZED (
  SELECT host_id, count(*) AS n FROM accounting_followedtask
   WHERE host_id IN (SELECT host_id FROM lists) GROUP BY host_id),
new AS MATERIALIZED (
  SELECT l.*, row_number() OVER (PARTITION BY l.host_id ORDER BY l.n) + coalesce(k.n, 0) - %(per_host)s AS excess
    FROM listed l LEFT JOIN known k ON k.host_id = l.host_id
   WHERE NOT EXISTS (SELECT FROM accounting_followedtask f
                      WHERE f.host_id = l.host_id AND f.project_id = l.project_id
                        AND f.name = l.name)),
short AS (SELECT host_id, max(excess) AS n FROM new GROUP BY host_id HAVING max(excess) > 0),
decided AS (
  SELECT f.id, s.n, row_number() OVER (PARTITION BY f.host_id ORDER BY f.last_seen_at, f.id) AS place
    FROM short s JOIN accounting_followedtask f ON f.host_id = s.host_id
   WHERE f.ask_after IS NULL
     AND NOT EXISTS (SELECT FROM listed o
                      WHERE o.host_id = f.host_id AND o.project_id = f.project_id AND o.name = f.name)),
dropped AS (
  DELETE FROM accounting_followedtask f USING decided d
   WHERE f.id = d.id AND d.place <= d.n
  RETURNING f.host_id),
room AS (SELECT host_id, count(*) AS n FROM dropped GROUP BY host_id),
added AS (
  INSERT INTO accounting_followedtask (host_id, project_id, name, first_seen_at, last_seen_at, standing,
         asks, unknowns, ask_after)
  SELECT host_id, project_id, name, at, at, 0, 0, 0, at + %(asked_after_secs)s * interval '1 second'
    FROM new LEFT JOIN room USING (host_id) WHERE excess <= coalesce(room.n, 0)
  ON CONFLICT DO NOTHING)
UPDATE accounting_tasklist t SET followed_at = l.at FROM lists l WHERE t.host_id = l.host_id
"""

# The tasks that run on a volunteer's computers, those that end first before the others; and their number. Locks
# nothing. Only the list of a computer's last contact counts.
RUNNING: Final = """
SELECT h.id, coalesce(nullif(h.given_name, ''), nullif(h.domain_name, ''), 'computer ' || h.id), p.id, p.name, p.colour,
       p.master_url, f.seen->>'web_rpc_url_base', e.task::text, t.at, count(*) OVER ()
  FROM portal_host h
  JOIN accounting_tasklist t ON t.host_id = h.id AND t.at >= %(since)s
  JOIN accounting_hostledger l ON l.host_id = h.id AND l.last_at <= t.at
  CROSS JOIN LATERAL jsonb_array_elements(t.tasks) AS e(task)
  JOIN accounting_project p ON p.id = (e.task->>'project')::bigint
  LEFT JOIN accounting_projectprofile f ON f.project_id = p.id
 WHERE h.owner_id = %(user)s AND h.merged_into_id IS NULL AND h.retired_at IS NULL
   AND (e.task->>'state')::integer = %(running)s
 ORDER BY (e.task->>'remaining_secs')::float8 NULLS LAST, h.id, e.task->>'name'
 LIMIT %(most)s
"""

# Gives the followed tasks of an older record to the newer one that it is merged with. Runs after the ledgers of both
# were locked (accounting/computers/merge.py), so no list is taken over meanwhile.
MOVE: Final = """
WITH moved AS (DELETE FROM accounting_followedtask WHERE host_id = %(older)s RETURNING *)
INSERT INTO accounting_followedtask (host_id, project_id, name, first_seen_at, last_seen_at, standing,
       granted_credit, asks, unknowns, ask_after, settled_at)
SELECT %(newer)s, project_id, name, first_seen_at, last_seen_at, standing, granted_credit, asks, unknowns,
       ask_after, settled_at
  FROM moved
ON CONFLICT DO NOTHING
"""
