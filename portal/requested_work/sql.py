"""SQL of the queue of requested work."""

from typing import Final

# What is waiting, in the order in which it will begin. Everybody's first piece comes before anybody's second, and a
# person's running pieces count as earlier ones. Among equals, whoever was served longest ago comes first. Locks
# nothing.
_IN_ORDER: Final = """
WITH running AS (
  SELECT user_id, count(*) AS n FROM portal_requestedwork
   WHERE started_at IS NOT NULL AND finished_at IS NULL GROUP BY user_id),
served AS (SELECT user_id, max(started_at) AS at FROM portal_requestedwork GROUP BY user_id),
waiting AS (
  SELECT w.id, w.kind, w.subject, coalesce(r.n, 0) AS nrunning, s.at AS served_at,
         coalesce(r.n, 0) + row_number() OVER (PARTITION BY w.user_id ORDER BY w.id) AS turn
    FROM portal_requestedwork w
    LEFT JOIN running r ON r.user_id = w.user_id
    LEFT JOIN served s ON s.user_id = w.user_id
   WHERE w.started_at IS NULL AND w.finished_at IS NULL)
"""
_ORDER: Final = "ORDER BY turn, served_at NULLS FIRST, id"

# Locks the row that it takes. Its transaction holds an advisory lock, so that no two count a person's running pieces at
# the same time. Kinds that this version does not know are left to workers of another.
TAKE: Final = f"""{_IN_ORDER}
UPDATE portal_requestedwork SET started_at = %(now)s, ntries = ntries + 1
 WHERE id = (SELECT id FROM waiting WHERE nrunning < %(per_person)s AND kind = ANY (%(kinds)s) {_ORDER} LIMIT 1)
RETURNING id, kind, subject
"""

# One statement, as another worker may take what it puts back at once. Locks the rows that were begun, in the order of
# their numbers, as two workers may put back the same ones.
PUT_BACK: Final = """
WITH begun AS (
  SELECT id, ntries >= %(max_tries)s AS is_given_up FROM portal_requestedwork
   WHERE kind = %(kind)s AND subject = ANY (%(subjects)s) AND started_at IS NOT NULL ORDER BY id FOR NO KEY UPDATE)
UPDATE portal_requestedwork w
   SET started_at = CASE WHEN b.is_given_up THEN w.started_at END,
       finished_at = CASE WHEN b.is_given_up THEN coalesce(w.finished_at, %(now)s) END,
       is_given_up = b.is_given_up
  FROM begun b WHERE w.id = b.id
RETURNING w.subject, b.is_given_up
"""

# The place of some waiting pieces and the seconds until they begin; 0 and 0 for running ones. The seconds are NULL if
# nothing is running, or if some kind of work before it was never finished in the days that are kept. Locks nothing.
STANDINGS: Final = f"""{_IN_ORDER},
mean AS (
  SELECT kind, avg(extract(epoch FROM finished_at - started_at))::float8 AS secs
    FROM portal_requestedwork WHERE started_at IS NOT NULL AND finished_at IS NOT NULL AND NOT is_given_up
   GROUP BY kind),
busy AS (
  SELECT count(*) AS n, bool_and(m.secs IS NOT NULL) AS is_known,
         sum(greatest(m.secs - extract(epoch FROM %(now)s - w.started_at)::float8, 0)) AS left_secs
    FROM portal_requestedwork w LEFT JOIN mean m ON m.kind = w.kind
   WHERE w.started_at IS NOT NULL AND w.finished_at IS NULL),
placed AS (
  SELECT w.kind, w.subject, row_number() OVER every AS place,
         coalesce(sum(m.secs) OVER earlier, 0) AS secs_before,
         count(*) FILTER (WHERE m.secs IS NULL) OVER earlier AS nunknown
    FROM waiting w LEFT JOIN mean m ON m.kind = w.kind
  WINDOW every AS ({_ORDER}), earlier AS ({_ORDER} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING))
SELECT p.subject, p.place, CASE WHEN b.is_known AND p.nunknown = 0 THEN (p.secs_before + b.left_secs) / b.n END
  FROM placed p CROSS JOIN busy b WHERE p.kind = %(kind)s AND p.subject = ANY (%(subjects)s)
 UNION ALL
SELECT subject, 0, 0 FROM portal_requestedwork
 WHERE kind = %(kind)s AND subject = ANY (%(subjects)s) AND started_at IS NOT NULL AND finished_at IS NULL
"""
