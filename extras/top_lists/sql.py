"""SQL for top lists. now() is the time of the transaction."""

from __future__ import annotations

from typing import Final

from credit.teams.sql import RECENT
from credit.teams.sql import SUMS as SUMS_OF_TEAMS

# Excludes volunteers who asked for their account to be deleted, or who are blocked.
_SHOWN: Final = "u.deletion_asked_at IS NULL AND u.is_active"
# Never the address: an account without a display name has none here either.
_NAME: Final = "coalesce(nullif(l.shown_name, ''), nullif(u.name, ''))"

# Counts everybody who is listed, or, where ``user`` is not NULL, that volunteer. Locks listings by volunteer.
COUNT_VOLUNTEERS: Final = f"""
WITH locked AS (
    SELECT user_id FROM top_lists_listedvolunteer
     WHERE %(user)s::bigint IS NULL OR user_id = %(user)s ORDER BY user_id FOR NO KEY UPDATE
)
UPDATE top_lists_listedvolunteer l
   SET total_credit = coalesce(c.total_credit, 0), recent_credit = coalesce({RECENT.format(credit="c")}, 0),
       counted_at = now()
  FROM locked k LEFT JOIN credit_usercredit c ON c.user_id = k.user_id
 WHERE l.user_id = k.user_id"""

# Locks nothing. The credit granted to listed volunteers for each app, including archived results, and from before a
# move.
GRANTED_FOR_APPS: Final = """
SELECT user_id, app_id, sum(credit) FROM (
    SELECT r.user_id, r.app_id, sum(greatest(coalesce(r.granted_credit, 0), r.partial_credit)) AS credit
      FROM credit_result r JOIN top_lists_listedvolunteer l ON l.user_id = r.user_id
     WHERE r.granted_credit IS NOT NULL OR r.partial_credit > 0
     GROUP BY 1, 2
     UNION ALL
    SELECT o.user_id, o.app_id, o.total_credit
      FROM credit_appopening o JOIN top_lists_listedvolunteer l ON l.user_id = o.user_id
     UNION ALL
    SELECT t.user_id, w.app_id,
           greatest(coalesce((t.facts->>'granted_credit')::float8, 0),
                    coalesce((t.facts->>'partial_credit')::float8, 0))
      FROM scheduler_archivedtask t
      JOIN top_lists_listedvolunteer l ON l.user_id = t.user_id
      JOIN scheduler_archivedworkunit w ON w.id = t.workunit_id) granted
 GROUP BY 1, 2 HAVING sum(credit) > 0"""

# Locks listings by volunteer: one who withdrew meanwhile has none, and gets no row.
KEEP_APP_CREDIT: Final = """
WITH kept AS (SELECT user_id FROM top_lists_listedvolunteer ORDER BY user_id FOR KEY SHARE)
INSERT INTO top_lists_listedappcredit (volunteer_id, app_id, total_credit)
SELECT s.user_id, s.app_id, s.credit
  FROM unnest(%s::bigint[], %s::bigint[], %s::float8[]) s (user_id, app_id, credit)
  JOIN kept USING (user_id) JOIN credit_app a ON a.id = s.app_id
 ORDER BY 1, 2
ON CONFLICT (volunteer_id, app_id) DO UPDATE SET total_credit = excluded.total_credit"""

# Locks as the one before. Credit that is no longer granted, for example after an invalidation, loses its row.
DROP_APP_CREDIT: Final = """
WITH kept AS (SELECT user_id FROM top_lists_listedvolunteer ORDER BY user_id FOR KEY SHARE)
DELETE FROM top_lists_listedappcredit a USING kept
 WHERE a.volunteer_id = kept.user_id AND (a.volunteer_id, a.app_id) NOT IN (
       SELECT s.user_id, s.app_id FROM unnest(%s::bigint[], %s::bigint[]) s (user_id, app_id))"""

# Locks the teams by number, against a team's deletion meanwhile.
COUNT_TEAMS: Final = f"""
WITH kept AS (SELECT id FROM credit_team ORDER BY id FOR KEY SHARE)
INSERT INTO top_lists_listedteam (team_id, nmembers, total_credit, recent_credit, counted_at)
SELECT s.team_id, s.nmembers, s.total_credit, s.expavg_credit, now()
  FROM ({SUMS_OF_TEAMS}) s JOIN kept ON kept.id = s.team_id
 ORDER BY 1
ON CONFLICT (team_id) DO UPDATE SET nmembers = excluded.nmembers, total_credit = excluded.total_credit,
       recent_credit = excluded.recent_credit, counted_at = excluded.counted_at"""

# A page of volunteers; {by} is a column with an index.
VOLUNTEERS: Final = f"""
SELECT l.user_id, {_NAME}, t.id, t.name, l.total_credit, l.recent_credit, l.counted_at
  FROM top_lists_listedvolunteer l
  JOIN portal_user u ON u.id = l.user_id
  LEFT JOIN credit_membership m ON m.user_id = l.user_id
  LEFT JOIN credit_team t ON t.id = m.team_id
 WHERE l.total_credit > 0 AND {_SHOWN}
 ORDER BY l.{{by}} DESC, l.user_id LIMIT %(limit)s OFFSET %(offset)s"""

VOLUNTEERS_OF_APP: Final = f"""
SELECT l.user_id, {_NAME}, t.id, t.name, a.total_credit, NULL, l.counted_at
  FROM top_lists_listedappcredit a
  JOIN top_lists_listedvolunteer l ON l.user_id = a.volunteer_id
  JOIN portal_user u ON u.id = l.user_id
  LEFT JOIN credit_membership m ON m.user_id = l.user_id
  LEFT JOIN credit_team t ON t.id = m.team_id
 WHERE a.app_id = %(app)s AND {_SHOWN}
 ORDER BY a.total_credit DESC, a.volunteer_id LIMIT %(limit)s OFFSET %(offset)s"""

TEAMS: Final = """
SELECT t.id, t.name, NULL, '', l.total_credit, l.recent_credit, l.counted_at, l.nmembers
  FROM top_lists_listedteam l JOIN credit_team t ON t.id = l.team_id
 WHERE l.total_credit > 0
 ORDER BY l.{by} DESC, l.team_id LIMIT %(limit)s OFFSET %(offset)s"""

# Members of a team who agreed to be shown, by the credit granted since they joined; and the founder among them.
MEMBERS: Final = f"""
SELECT l.user_id, {_NAME}, NULL, '', greatest(coalesce(c.total_credit, 0) - m.credit_before, 0) AS in_team, NULL,
       m.joined_at
  FROM credit_membership m
  JOIN top_lists_listedvolunteer l ON l.user_id = m.user_id
  JOIN portal_user u ON u.id = m.user_id
  LEFT JOIN credit_usercredit c ON c.user_id = m.user_id
 WHERE m.team_id = %(team)s AND {_SHOWN}
 ORDER BY in_team DESC, l.user_id LIMIT %(limit)s OFFSET %(offset)s"""

FOUNDER: Final = f"""
SELECT {_NAME} FROM top_lists_listedvolunteer l JOIN portal_user u ON u.id = l.user_id
 WHERE l.user_id = %(user)s AND {_SHOWN}"""
