"""How results ended, hour by hour: the roll-up, and the reads for charts."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple

from django.db import connection, transaction
from django.db.models import Sum
from django.db.models.functions import Trunc
from django.utils.translation import gettext, gettext_noop

from credit.engine.states import Outcome
from credit.figures import sql
from credit.figures.names import all_versions, app_names, version_names
from credit.models import ResultHour, ResultHourMark
from credit.models.work import OUTCOMES
from credit.pages.state_texts import exit_text
from portal.dashboard.registry import label_text
from portal.dashboard.rules import Points
from portal.languages.sentences import in_english

LAG: Final = dt.timedelta(minutes=2)
"""Reports are committed within this time: clients are answered within a minute."""
STEP: Final = dt.timedelta(hours=1)
FIRST: Final = dt.timedelta(days=1)
"""How far back the first run counts."""
TIMED_OUT_AGAIN: Final = dt.timedelta(days=1)
HOURS_KEPT: Final = dt.timedelta(days=31)
UNFIT_AGAIN: Final = dt.timedelta(days=7)
"""How long after their report outputs may still be found unfit, once there are others to compare them with."""
# Nobody knows when a computer lost the jobs that it no longer has.
FAILURES: Final = (Outcome.CLIENT_ERROR, Outcome.NO_REPLY, Outcome.VALIDATE_ERROR)


def roll_up(now: dt.datetime) -> None:
    """Count what was received since the last run, one hour per transaction. Safe to repeat.

    Locks the mark, then rows of the roll-up, which nothing else writes.
    """
    until = now - LAG
    ResultHourMark.objects.get_or_create(pk=1, defaults={"counted_until": until - FIRST})
    _go_back(until)
    while _count_an_hour(until):
        pass
    _move_unfit(now)
    _count_timed_out(now)


def _go_back(until: dt.datetime) -> None:
    """Count again from this hour if the clock was ahead: results received since then would never be counted."""
    hour = until.astimezone(dt.UTC).replace(minute=0, second=0, microsecond=0)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql.LOCK_MARK)
        # Another worker may have begun a moment later.
        if cursor.fetchone()[0] > until + LAG:
            cursor.execute(sql.FORGET_RECEIVED, {"since": hour})
            cursor.execute(sql.SET_MARK, [hour - dt.timedelta(microseconds=1)])


def _count_an_hour(until: dt.datetime) -> bool:
    """Count one hour; return whether more are left."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql.LOCK_MARK)
        since: dt.datetime = cursor.fetchone()[0]
        end = min(until, since + STEP)
        if end <= since:
            return False
        cursor.execute(sql.ADD_RECEIVED, {"since": since, "until": end})
        cursor.execute(sql.SET_MARK, [end])
    return end < until


def _move_unfit(now: dt.datetime) -> None:
    since = (now - UNFIT_AGAIN).astimezone(dt.UTC).replace(minute=0, second=0, microsecond=0)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql.LOCK_MARK)
        until = cursor.fetchone()[0]
        cursor.execute(sql.MOVE_UNFIT, {"since": since, "until": until})


def _count_timed_out(now: dt.datetime) -> None:
    since = (now - TIMED_OUT_AGAIN).astimezone(dt.UTC).replace(minute=0, second=0, microsecond=0)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql.LOCK_MARK)
        cursor.execute(sql.FORGET_TIMED_OUT, {"since": since})
        cursor.execute(sql.ADD_TIMED_OUT, {"since": since, "until": now})


def join_hours(now: dt.datetime) -> None:
    """Merge the hours of each older day into one row. Daily; safe to repeat."""
    day = now.astimezone(dt.UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql.LOCK_MARK)
        cursor.execute(sql.JOIN_HOURS, {"before": day - HOURS_KEPT})


# --- what charts read -----------------------------------------------------------------------------------


class EndedResults(NamedTuple):
    """Results of an hour, or of a day, that ended alike; fields that were not requested are empty."""

    at: dt.datetime
    number: int
    app: str = ""
    version: str = ""
    platform: str = ""
    outcome: int = 0
    exit_status: int | None = None


_OWN: Final = gettext_noop("volunteers’ own programs")
_OTHER_STATUSES: Final = gettext_noop("other exit statuses")
_STATUS: Final = "exit status "
WORDS: Final = (_OWN, _OTHER_STATUSES, *(in_english(text) for text in OUTCOMES.values()))
Column = Literal["app_id", "app_version_id", "outcome", "exit_status"]


def read(
    since: dt.datetime, until: dt.datetime, columns: Sequence[Column], only: Sequence[Outcome] = (), daily: bool = False
) -> list[EndedResults]:
    """Return sums per hour (or day) by ``columns``, for all outcomes or ``only`` these; at most three statements."""
    apps = app_names()
    versions = all_versions() if "app_version_id" in columns else {}
    names = version_names(versions, apps)
    rows = ResultHour.objects.filter(hour__gte=since, hour__lte=until)
    if only:
        rows = rows.filter(outcome__in=only)
    at = Trunc("hour", "day" if daily else "hour", tzinfo=dt.UTC)
    groups = []
    for row in rows.annotate(at=at).values("at", *columns).annotate(number=Sum("count")).order_by("at"):
        app = apps.get(row.get("app_id"), "")
        version = versions.get(row.get("app_version_id"))
        groups.append(
            EndedResults(
                row["at"],
                row["number"],
                app,
                names[version.pk] if version else (f"{app}, {_OWN}" if app else _OWN),
                str(version.platform) if version else _OWN,
                row.get("outcome", 0),
                row.get("exit_status"),
            )
        )
    return groups


def by(
    label: Callable[[EndedResults], str], columns: Sequence[Column], only: Sequence[Outcome] = ()
) -> Callable[[dt.datetime, dt.datetime], dict[str, Points]]:
    """Return a figure's history: results per hour by ``label``, which reads ``columns``.

    For more than a month there is one point a day, with the mean per hour of that day.
    """

    def history(since: dt.datetime, until: dt.datetime) -> dict[str, Points]:
        daily = until - since > HOURS_KEPT
        sums: dict[str, dict[float, float]] = defaultdict(lambda: defaultdict(float))
        for row in read(since, until, columns, only, daily):
            # Today is not over yet.
            hours = min(24.0, max(1.0, (until - row.at) / dt.timedelta(hours=1))) if daily else 1
            sums[label(row)][row.at.timestamp()] += row.number / hours
        times = sorted({at for series in sums.values() for at in series})
        return {name: [(at, series.get(at, 0.0)) for at in times] for name, series in sorted(sums.items())}

    return history


def outcome_name(row: EndedResults) -> str:
    return outcome_text(Outcome(row.outcome))


def outcome_text(outcome: Outcome) -> str:
    """Return the outcome in English, as it is stored with a figure's samples."""
    return in_english(OUTCOMES[outcome])


def error_name(row: EndedResults) -> str:
    """Return the name of an outcome, or of its exit status."""
    if row.outcome != Outcome.CLIENT_ERROR:
        return outcome_name(row)
    if row.exit_status is None:
        return _OTHER_STATUSES
    return f"{_STATUS}{row.exit_status}"


def error_text(name: str) -> str:
    """Translate a name from `error_name` into the page's language, with the meaning of an exit status."""
    number = name.removeprefix(_STATUS)
    if number == name or not number.removeprefix("-").isdecimal():
        return label_text(name)
    if words := exit_text(int(number)):
        return gettext("exit status %(number)s (%(words)s)") % {"number": number, "words": words}
    return gettext("exit status %(number)s") % {"number": number}
