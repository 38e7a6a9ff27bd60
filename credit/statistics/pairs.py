"""Find the pairs of volunteers who confirm each other's results more often than chance allows. Hourly."""

from __future__ import annotations

import datetime as dt
from typing import Final

from django.conf import settings
from django.db import connection, transaction

from credit.engine.pairs import MIN_TOGETHER, Meeting, Suspicion, suspicions
from credit.engine.states import ValidateState
from credit.models import App, ConfirmingPair
from credit.models.pairs import MAX_PAIRS_PER_APP

LOOKED_BACK: Final = dt.timedelta(days=7)
MAX_MEETINGS: Final = 20_000
"""The number of pairs whose chance is calculated: those that met most often, relative to their results."""

# Locks nothing. For workunits with valid results of several volunteers: how many of these results there are, from how
# many volunteers, and the pairs with several workunits in common.
_MEETINGS: Final = f"""
WITH valid AS MATERIALIZED (
  SELECT workunit_id, user_id, count(*) OVER (PARTITION BY workunit_id) - 1 AS nothers
    FROM (SELECT DISTINCT workunit_id, user_id FROM credit_result
           WHERE app_id = %(app)s AND validate_state = {ValidateState.VALID.value} AND user_id IS NOT NULL
             AND received_at >= %(since)s) v),
shared AS MATERIALIZED (SELECT * FROM valid WHERE nothers > 0),
volunteers AS MATERIALIZED (
  SELECT user_id, count(*) AS nresults, sum(nothers)::bigint AS nothers FROM shared GROUP BY user_id),
pairs AS (
  SELECT a.user_id AS one, b.user_id AS other, count(*) AS together
    FROM shared a JOIN shared b ON b.workunit_id = a.workunit_id AND b.user_id > a.user_id
   GROUP BY 1, 2 HAVING count(*) >= {MIN_TOGETHER})
SELECT p.one, p.other, p.together, a.nresults, b.nresults, a.nothers, b.nothers,
       (SELECT count(*) FROM shared), (SELECT count(*) FROM volunteers)
  FROM pairs p JOIN volunteers a ON a.user_id = p.one JOIN volunteers b ON b.user_id = p.other
 ORDER BY p.together::float8 / a.nresults / b.nresults DESC, p.one, p.other LIMIT {MAX_MEETINGS}
"""


def count_all(now: dt.datetime) -> int:
    """Update the lists of all apps, each in a separate transaction; return the number of pairs."""
    return sum(renew(app.pk, now) for app in App.objects.filter(is_deprecated=False))


def renew(app_id: int, now: dt.datetime) -> int:
    """Recount the pairs of an app from its results; the list has at most ``MAX_PAIRS_PER_APP`` pairs.

    Counts before anything is locked. Then locks the app, so that two runs do not mix, and writes the list.
    """
    suspected = _read(app_id, now)[:MAX_PAIRS_PER_APP]
    with transaction.atomic():
        if not App.objects.select_for_update(no_key=True).filter(pk=app_id).exists():
            return 0
        ConfirmingPair.objects.filter(app=app_id).delete()
        ConfirmingPair.objects.bulk_create(_row(app_id, suspicion, now) for suspicion in suspected)
    return len(suspected)


def _read(app_id: int, now: dt.datetime) -> list[Suspicion]:
    with connection.cursor() as cursor:
        cursor.execute(_MEETINGS, {"app": app_id, "since": now - LOOKED_BACK})
        rows = cursor.fetchall()
    meetings = [
        Meeting((one, other), n, (own, its), (ours, theirs)) for one, other, n, own, its, ours, theirs, *_ in rows
    ]
    return suspicions(meetings, *rows[0][-2:]) if rows else []


def _row(app_id: int, suspicion: Suspicion, now: dt.datetime) -> ConfirmingPair:
    one, other = suspicion.meeting.pair
    return ConfirmingPair(
        app_id=app_id,
        one_id=one,
        other_id=other,
        together=suspicion.meeting.together,
        expected=suspicion.expected,
        chance=suspicion.chance,
        needs_another=suspicion.chance < settings.PAIR_CHANCE,
        counted_at=now,
    )
