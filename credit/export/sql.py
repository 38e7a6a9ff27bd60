"""SQL of the export. All reads see the same snapshot; nothing is locked. now() is the time of the snapshot.

COPY returns rows as text as they are found, so neither side holds more than a few of them.
"""

from __future__ import annotations

from typing import Final

from credit.teams.sql import RECENT
from credit.teams.sql import SUMS as SUMS_OF_TEAMS

LOCK: Final = "SELECT pg_try_advisory_lock(hashtext('credit.export'))"
UNLOCK: Final = "SELECT pg_advisory_unlock_all()"
# A long COPY is not a hanging statement. Records are in the order of their numbers: by the primary keys, so without a
# sort.
SESSION: Final = "SET statement_timeout = 0; SET jit = off; SET timezone = UTC"

_NOW: Final = "extract(epoch FROM now())"
_PUBLISHED: Final = "e.exports_statistics AND u.deletion_asked_at IS NULL"
USER_CPID: Final = "md5(u.cross_project_id || u.email)"
# With an empty id, it would be a digest of the address alone.
HOST_CPID: Final = """CASE WHEN h.host_cpid = '' AND h.published_cpid <> '' THEN h.published_cpid
     ELSE md5(coalesce(nullif(h.host_cpid, ''), h.token) || u.email) END"""

USERS: Final = f"""COPY (
SELECT u.id, u.name, floor(extract(epoch FROM u.created_at))::bigint,
       c.total_credit, {RECENT.format(credit="c")}, {_NOW}, {USER_CPID}, m.team_id
  FROM credit_usercredit c
  JOIN portal_user u ON u.id = c.user_id
  JOIN credit_exportconsent e ON e.user_id = c.user_id
  LEFT JOIN credit_membership m ON m.user_id = c.user_id
 WHERE c.total_credit > 0 AND {_PUBLISHED}
 ORDER BY c.user_id
) TO STDOUT"""

# The founder is included only as far as they are published. The team's credit is that of all its members.
TEAMS: Final = f"""COPY (
SELECT t.id, t.type, t.name, CASE WHEN {_PUBLISHED} THEN u.id END, s.total_credit, s.expavg_credit, {_NOW},
       CASE WHEN {_PUBLISHED} THEN coalesce(nullif(u.name, ''), 'Anonymous') END,
       floor(extract(epoch FROM t.created_at))::bigint, t.url, t.description, coalesce(nullif(t.country, ''), 'None')
  FROM credit_team t
  JOIN ({SUMS_OF_TEAMS}) s ON s.team_id = t.id
  LEFT JOIN portal_user u ON u.id = t.founder_id
  LEFT JOIN credit_exportconsent e ON e.user_id = t.founder_id
 WHERE s.total_credit > 0
 ORDER BY t.id
) TO STDOUT"""

# Free disk space and transfer speeds are not stored here, and credit by processor time is an old system of BOINC: 0.
HOSTS: Final = f"""COPY (
SELECT h.id, h.owner_id, c.total_credit, {RECENT.format(credit="c")}, {_NOW},
       h.p_vendor, h.p_model, h.os_name, h.os_version,
       json_build_object('boinc_version', h.client_version, 'vbox_version', h.virtualbox_version, 'coprocs', h.coprocs),
       floor(extract(epoch FROM h.created_at))::bigint, floor(extract(epoch FROM h.last_contact_at))::bigint,
       coalesce(h.timezone_secs, 0), h.ncpus, coalesce(h.p_fpops, 0), coalesce(h.p_iops, 0), coalesce(h.p_membw, 0),
       coalesce(h.m_nbytes, 0), coalesce(h.m_cache, 0), coalesce(h.m_swap, 0), coalesce(h.d_total, 0), 0,
       0, 0, coalesce(v.turnaround, 0), 0, {HOST_CPID}
  FROM credit_hostcredit c
  JOIN portal_host h ON h.id = c.host_id
  JOIN portal_user u ON u.id = h.owner_id
  JOIN credit_exportconsent e ON e.user_id = h.owner_id
  LEFT JOIN (SELECT host_id, sum(turnaround_n * turnaround_avg) / sum(turnaround_n) AS turnaround
               FROM credit_hostappversion WHERE turnaround_n > 0 GROUP BY host_id) v ON v.host_id = h.id
 WHERE c.total_credit > 0 AND e.shows_hosts AND {_PUBLISHED} AND h.merged_into_id IS NULL
 ORDER BY c.host_id
) TO STDOUT"""

# For this site's own account manager only: what it reads of other projects' exports, but for everybody.
AS_OF: Final = "SELECT floor(extract(epoch FROM now()))::bigint"
_GRANTED: Final = f"""
SELECT {{owner}}.id, c.total_credit, {RECENT.format(credit="c")}, {_NOW}::float8,
       floor(extract(epoch FROM {{owner}}.created_at))::bigint, {{cpid}}::bytea"""
GRANTED_USERS: Final = f"""{_GRANTED.format(owner="u", cpid=USER_CPID)}
  FROM credit_usercredit c
  JOIN portal_user u ON u.id = c.user_id
 WHERE c.total_credit > 0
 ORDER BY c.user_id"""
GRANTED_HOSTS: Final = f"""{_GRANTED.format(owner="h", cpid=HOST_CPID)}
  FROM credit_hostcredit c
  JOIN portal_host h ON h.id = c.host_id
  JOIN portal_user u ON u.id = h.owner_id
 WHERE c.total_credit > 0 AND h.merged_into_id IS NULL
 ORDER BY c.host_id"""

# Whether there was an export since they agreed, and before they asked to be deleted: if not, readers have nothing to
# drop.
_EXPORTED: Final = """EXISTS (SELECT FROM credit_statisticsexport s
                WHERE (s.finished_at IS NULL OR s.finished_at >= e.changed_at)
                  AND (u.deletion_asked_at IS NULL OR s.started_at < u.deletion_asked_at))"""

# Volunteers who are published again are left out, but their rows stay: they may withdraw once more before the next
# export. Those who asked to be deleted are gone at once, not only after the grace period: otherwise they would be in
# neither list meanwhile.
GONE_USERS: Final = f"""COPY (
SELECT g.user_id, g.cpid FROM credit_goneuser g
 WHERE g.gone_at > now() - interval '60 days'
   AND NOT EXISTS (SELECT FROM portal_user u JOIN credit_exportconsent e ON e.user_id = u.id
                    WHERE u.id = g.user_id AND {_PUBLISHED})
 UNION
SELECT u.id, {USER_CPID} FROM portal_user u
  JOIN credit_exportconsent e ON e.user_id = u.id JOIN credit_usercredit c ON c.user_id = u.id
 WHERE u.deletion_asked_at IS NOT NULL AND e.exports_statistics AND c.total_credit > 0 AND {_EXPORTED}
   AND NOT EXISTS (SELECT FROM credit_goneuser g
                    WHERE g.user_id = u.id AND g.gone_at > now() - interval '60 days')
 ORDER BY 1
) TO STDOUT"""
GONE_HOSTS: Final = f"""COPY (
SELECT g.host_id, g.cpid FROM credit_gonehost g
 WHERE g.gone_at > now() - interval '60 days'
   AND NOT EXISTS (SELECT FROM portal_host h JOIN portal_user u ON u.id = h.owner_id
                     JOIN credit_exportconsent e ON e.user_id = u.id
                    WHERE h.id = g.host_id AND h.merged_into_id IS NULL AND e.shows_hosts AND {_PUBLISHED})
 UNION
SELECT h.id, {HOST_CPID} FROM portal_host h
  JOIN portal_user u ON u.id = h.owner_id
  JOIN credit_exportconsent e ON e.user_id = u.id JOIN credit_hostcredit c ON c.host_id = h.id
 WHERE u.deletion_asked_at IS NOT NULL AND e.exports_statistics AND e.shows_hosts AND c.total_credit > 0
   AND h.merged_into_id IS NULL AND {_EXPORTED}
   AND NOT EXISTS (SELECT FROM credit_gonehost g
                    WHERE g.host_id = h.id AND g.gone_at > now() - interval '60 days')
 ORDER BY 1
) TO STDOUT"""

# Of the whole project, including those who are not published: none of it is about one person.
SUMS: Final = """
SELECT extract(epoch FROM now())::float8,
       (SELECT count(*) FROM credit_usercredit WHERE total_credit > 0),
       (SELECT count(*) FROM credit_hostcredit WHERE total_credit > 0),
       (SELECT coalesce(sum(total_credit), 0) FROM credit_usercredit)"""

APPS: Final = "SELECT user_friendly_name FROM credit_app WHERE NOT is_deprecated ORDER BY id"

_AGAIN: Final = """ON CONFLICT ({key}) DO UPDATE SET cpid = excluded.cpid, gone_at = excluded.gone_at"""

# Adds a published volunteer to the list of those who are gone. Locks the row that it writes there.
USER_GONE: Final = f"""
INSERT INTO credit_goneuser (user_id, cpid, gone_at)
SELECT u.id, {USER_CPID}, %(now)s FROM portal_user u
  JOIN credit_exportconsent e ON e.user_id = u.id JOIN credit_usercredit c ON c.user_id = u.id
 WHERE u.id = %(user)s AND e.exports_statistics AND c.total_credit > 0 AND {_EXPORTED}
{_AGAIN.format(key="user_id")}"""

# The same for computers: all of a volunteer's or, if ``host`` is not NULL, one of them.
HOSTS_GONE: Final = f"""
INSERT INTO credit_gonehost (host_id, cpid, gone_at)
SELECT h.id, {HOST_CPID}, %(now)s FROM portal_host h
  JOIN portal_user u ON u.id = h.owner_id
  JOIN credit_exportconsent e ON e.user_id = u.id JOIN credit_hostcredit c ON c.host_id = h.id
 WHERE (h.owner_id = %(user)s OR h.id = %(host)s) AND e.exports_statistics AND e.shows_hosts AND c.total_credit > 0
   AND {_EXPORTED}
 ORDER BY h.id
{_AGAIN.format(key="host_id")}"""
