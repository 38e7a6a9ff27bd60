"""The statements of the dashboard. None locks anything."""

from __future__ import annotations

from typing import Final

# What the tiles show, oldest first: the last values of each hour, and all of the last quarter of an hour, which has the
# latest values of a source that failed. Figures are taken together, so 25 index probes find the times.
LAST_DAY: Final = """
SELECT name, label, extract(epoch FROM taken_at)::float8, value FROM portal_operatingfigure
 WHERE taken_at = ANY(ARRAY(
         SELECT (SELECT max(taken_at) FROM portal_operatingfigure
                  WHERE taken_at >= hour AND taken_at < hour + interval '1 hour' AND taken_at <= %(now)s)
           FROM generate_series(date_trunc('hour', %(since)s::timestamptz), %(now)s, interval '1 hour') AS hour))
    OR (taken_at <= %(now)s AND taken_at > (
         SELECT max(taken_at) FROM portal_operatingfigure WHERE taken_at <= %(now)s) - interval '15 minutes')
 ORDER BY taken_at
"""
# The values of the last time in each bucket, of one figure: what a long chart shows.
COURSE: Final = """
SELECT label, extract(epoch FROM taken_at)::float8, value
  FROM (SELECT label, taken_at, value, max(taken_at) OVER (
                 PARTITION BY floor(extract(epoch FROM taken_at) / %(bucket_secs)s)) AS last_at
          FROM portal_operatingfigure WHERE name = %(name)s AND taken_at > %(since)s AND taken_at <= %(until)s) AS found
 WHERE taken_at = last_at ORDER BY label, taken_at
"""
# The sessions in use as a share of those allowed.
DATABASE: Final = """
SELECT pg_database_size(current_database()) AS "services.database_size",
       100.0 * count(*) / current_setting('max_connections')::int AS "services.database_sessions"
  FROM pg_stat_activity WHERE backend_type = 'client backend'
"""
# Lags are NULL for users who may not see them (pg_monitor), and for a standby that is idle and up to date.
STANDBYS: Final = """
SELECT coalesce(nullif(application_name, ''), client_addr::text, 'standby') AS key,
       coalesce(extract(epoch FROM replay_lag), 0) AS "services.replication_lag"
  FROM pg_stat_replication WHERE state IS NOT NULL
"""
REQUESTED: Final = """
SELECT count(*) AS "services.requested_waiting",
       coalesce(extract(epoch FROM %(now)s - min(asked_at)), 0) AS "services.requested_oldest"
  FROM portal_requestedwork WHERE started_at IS NULL AND finished_at IS NULL
"""
REGISTERED: Final = """
SELECT (SELECT count(*) FROM portal_user WHERE created_at > %(now)s - interval '1 day' AND is_active)
           AS "status.users_registered_in_past_24_hours",
       (SELECT count(*) FROM portal_host WHERE created_at > %(now)s - interval '1 day')
           AS "status.hosts_registered_in_past_24_hours"
"""
# The latest value of each series of the public status.
LATEST: Final = """
SELECT DISTINCT ON (name, label) name, label, extract(epoch FROM taken_at)::float8, value
  FROM portal_operatingfigure WHERE taken_at > %(since)s AND taken_at <= %(now)s
   AND (name LIKE 'status.%%' OR name LIKE 'jobs.%%' OR name = 'am.active')
 ORDER BY name, label, taken_at DESC
"""
