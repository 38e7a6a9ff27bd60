"""Sums that no request keeps: per project and day, and each volunteer's totals at a project. Run by a task.

Each run reads the days anew and overwrites, so it may run twice, or at any time.
"""

from __future__ import annotations

import datetime as dt
from typing import Final

from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper

# Any number; a second roll-up at the same time has nothing to do.
_LOCK: Final = 7_130_002
# Half-life of the recent average (BOINC protocol, estimated credit: project-side average).
HALF_LIFE_DAYS: Final = 7.0
# Days before this many contribute less than 1e-4 of their credit to the average.
AVERAGED_DAYS: Final = 100

_PROJECT_DAYS: Final = """
INSERT INTO accounting_projectday (project_id, day, hosts, users, cpu_ec, gpu_ec, cpu_time, gpu_time, njobs_success,
       njobs_error, rolled_up_at)
SELECT project_id, day, count(DISTINCT host_id), count(DISTINCT user_id), sum(cpu_ec), sum(gpu_ec), sum(cpu_time),
       sum(gpu_time), sum(njobs_success), sum(njobs_error), %(now)s
  FROM (SELECT project_id, day, user_id, host_id, cpu_ec, gpu_ec, cpu_time, gpu_time, njobs_success, njobs_error
          FROM accounting_day
         UNION ALL
        SELECT project_id, day, NULL, NULL, cpu_ec, gpu_ec, cpu_time, gpu_time, njobs_success, njobs_error
          FROM accounting_erasedday) AS days
 WHERE day BETWEEN %(first)s AND %(today)s GROUP BY project_id, day
ON CONFLICT (project_id, day) DO UPDATE
   SET hosts = excluded.hosts, users = excluded.users, cpu_ec = excluded.cpu_ec, gpu_ec = excluded.gpu_ec,
       cpu_time = excluded.cpu_time, gpu_time = excluded.gpu_time, njobs_success = excluded.njobs_success,
       njobs_error = excluded.njobs_error, rolled_up_at = excluded.rolled_up_at
"""

# Credit arrives all day long, on average in the middle of a day, or of what there is of today; from then on it decays.
# All computers of a volunteer count, however old, if there is anything new to say of one of them.
_USER_PROJECTS: Final = """
WITH totals AS (
  SELECT h.owner_id AS user_id, p.project_id, sum(p.credited[1] + p.credited[2])::bigint AS total
    FROM accounting_hostproject p JOIN portal_host h ON h.id = p.host_id
   WHERE h.owner_id IN (SELECT owner_id FROM portal_host WHERE last_contact_at >= %(since)s
                        UNION SELECT user_id FROM accounting_userproject WHERE avg_ec > 0)
   GROUP BY h.owner_id, p.project_id),
recent AS (
  SELECT user_id, project_id,
         sum((cpu_ec + gpu_ec) / 1e6 * power(0.5, CASE day WHEN %(today)s THEN %(part)s / 2
                ELSE %(today)s - day + %(part)s - 0.5 END / %(half_life)s)) AS ec
    FROM accounting_day WHERE day BETWEEN %(averaged)s AND %(today)s GROUP BY user_id, project_id)
INSERT INTO accounting_userproject (user_id, project_id, is_chosen, total_ec, avg_ec, avg_at)
SELECT t.user_id, t.project_id, false, t.total, coalesce(r.ec, 0) * ln(2) / %(half_life)s, %(now)s
  FROM totals t LEFT JOIN recent r USING (user_id, project_id)
ON CONFLICT (user_id, project_id) DO UPDATE
   SET total_ec = excluded.total_ec, avg_ec = excluded.avg_ec, avg_at = excluded.avg_at
"""


# The day before the last run, as that day may have got reports after it; at the first run, all that there is.
_UNFINISHED: Final = """
SELECT coalesce((SELECT (max(rolled_up_at) AT TIME ZONE 'UTC')::date - 1 FROM accounting_projectday),
                (SELECT min(day) FROM accounting_day))
"""


def roll_up(now: dt.datetime, since: dt.date | None = None) -> bool:
    """Bring the sums up to date from day ``since`` on; False if another run is at it.

    Default: from where the last run left off, but at least from yesterday.
    """
    today = now.date()
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [_LOCK])
        if cursor.fetchone() != (True,):
            return False
        first = since or _unfinished(cursor, today - dt.timedelta(days=1))
        cursor.execute(_PROJECT_DAYS, {"now": now, "first": first, "today": today})
        cursor.execute(
            _USER_PROJECTS,
            {
                "now": now,
                "today": today,
                "since": now - dt.timedelta(days=AVERAGED_DAYS),
                "averaged": today - dt.timedelta(days=AVERAGED_DAYS),
                "half_life": HALF_LIFE_DAYS,
                # How much of today is over.
                "part": (now - dt.datetime.combine(today, dt.time(), dt.UTC)) / dt.timedelta(days=1),
            },
        )
    return True


def _unfinished(cursor: CursorWrapper, yesterday: dt.date) -> dt.date:
    cursor.execute(_UNFINISHED)
    row = cursor.fetchone()
    return min(yesterday, row[0]) if row is not None and row[0] is not None else yesterday
