"""The effects of changed settings: an app's credit before and after a change, measured from results."""

from __future__ import annotations

import datetime as dt
from dataclasses import asdict, dataclass
from typing import Any, Final

from django.core.cache import cache
from django.db import connection
from django.utils import timezone
from django.utils.translation import gettext

from credit.changes import sql
from credit.changes.events import credit_changes
from credit.models import App, AppVersion, CreditChange
from portal.audit.steps import Section
from portal.models import Change
from portal.templatetags.display import localised

MEASURED: Final = dt.timedelta(days=7)
"""Measured before and after a change; less if another change of the app's credit is closer."""
MAX_WORKUNITS: Final = 50_000
_FRESH_SECS: Final = 600
_FLOPS: Final = 1e12
"""The unit of ``per_flops``: credit is shown per this many estimated FLOPs."""


@dataclass(frozen=True, slots=True)
class Side:
    """A version's grants before or after a change: ``per_flops`` with its 10th and 90th percentiles."""

    ngranted: int
    per_day: float
    per_flops: float
    lowest: float
    highest: float


@dataclass(frozen=True, slots=True)
class VersionEffect:
    """A version's grants before and after a change; ``version`` None: volunteers' own programs."""

    version: int | None
    name: str
    before: Side | None
    after: Side | None


@dataclass(frozen=True, slots=True)
class Effects:
    """The measured effects of a change.

    ``until``: the end of the measured time; now if the time after the change is not over yet. ``is_part``: there were
    more workunits than are read, so sums over the whole time are unknown.
    """

    since: dt.datetime
    until: dt.datetime
    is_over: bool
    rows: list[VersionEffect]
    is_part: bool = False

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "since": self.since.isoformat(), "until": self.until.isoformat()}

    @classmethod
    def of_json(cls, stored: dict[str, Any]) -> Effects:
        rows = [
            VersionEffect(
                row["version"],
                row["name"],
                Side(**row["before"]) if row["before"] else None,
                Side(**row["after"]) if row["after"] else None,
            )
            for row in stored["rows"]
        ]
        since, until = (dt.datetime.fromisoformat(stored[name]) for name in ("since", "until"))
        return cls(since, until, stored["is_over"], rows, stored.get("is_part", False))


def measure(app: App, change: Change, now: dt.datetime) -> Effects:
    """Measure the grants before and after a change."""
    at = change.timestamp
    others = credit_changes(app.pk).exclude(pk=change.pk)
    earlier = others.filter(timestamp__lte=at, timestamp__gt=at - MEASURED).order_by("timestamp").last()
    later = others.filter(timestamp__gt=at, timestamp__lt=at + MEASURED).order_by("timestamp").first()
    since = earlier.timestamp if earlier is not None else at - MEASURED
    end = later.timestamp if later is not None else at + MEASURED
    until = min(end, now)
    (before, is_part_before), (after, is_part_after) = _granted(app, since, at), _granted(app, at, until)
    versions = {version.pk: version for version in app.versions.select_related("app", "platform")}
    rows = [
        VersionEffect(version, _name(versions.get(version or 0)), before.get(version), after.get(version))
        for version in sorted({*before, *after}, key=lambda pk: (pk is None, pk or 0))
    ]
    return Effects(since, until, now >= end, rows, is_part_before or is_part_after)


def _name(version: AppVersion | None) -> str:
    return "Volunteers’ own programs" if version is None else f"{version.number_label} {version.platform.name}"


def _granted(app: App, since: dt.datetime, until: dt.datetime) -> tuple[dict[int | None, Side], bool]:
    """Return the grants by version, and whether only the newest workunits were read."""
    days = (until - since) / dt.timedelta(days=1)
    if days <= 0:
        return {}, False
    with connection.cursor() as cursor:
        cursor.execute(sql.GRANTED, {"app": app.pk, "since": since, "until": until, "limit": MAX_WORKUNITS})
        rows = cursor.fetchall()
    sides = {
        version: Side(ngranted, credit / days, per_flop * _FLOPS, spread[0] * _FLOPS, spread[1] * _FLOPS)
        for version, ngranted, credit, per_flop, spread, _ in rows
    }
    return sides, any(row[-1] for row in rows)


def measure_recent(now: dt.datetime) -> int:
    """Store the effects of recent changes before results are deleted; return how many. Daily; safe to repeat."""
    count = 0
    for app in App.objects.order_by("pk"):
        for change in credit_changes(app.pk).filter(timestamp__gte=now - MEASURED - dt.timedelta(days=2)):
            effects = measure(app, change, now).as_json()
            CreditChange.objects.update_or_create(change=change, defaults={"effects": effects})
            count += 1
    return count


def section(change: Change) -> Section | None:
    """Build the part of a change's page that describes its effects; None if it did not affect credit."""
    app = _app_of(change)
    if app is None or not credit_changes(app.pk).filter(pk=change.pk).exists():
        return None
    stored = CreditChange.objects.select_related("preview").filter(change=change).first()
    effects = Effects.of_json(stored.effects) if stored is not None and stored.effects else None
    if effects is None or not effects.is_over:
        effects = _measured_lately(app, change)
    context = {
        "preview": stored.preview if stored is not None else None,
        "effects": effects,
        "sentence": sentence(effects),
        "nread": MAX_WORKUNITS,
    }
    return Section("credit/changes/effects.html", context)


def _measured_lately(app: App, change: Change) -> Effects:
    """Measure, or reuse a measurement from the last ten minutes, because many results are read."""
    key = f"effects-of-change-{change.pk}-{change.timestamp.timestamp()}"
    effects = cache.get(key)
    if effects is None:
        effects = measure(app, change, timezone.now()).as_json()
        cache.set(key, effects, _FRESH_SECS)
    return Effects.of_json(effects)


def _app_of(change: Change) -> App | None:
    model = change.content_type.model_class()
    if model is App:
        return App.objects.filter(pk=change.object_id).first()
    if model is AppVersion:
        return App.objects.filter(versions=change.object_id).first()
    return None


def sentence(effects: Effects) -> str:
    """Summarise the effects in a sentence."""
    before = _whole([row.before for row in effects.rows])
    after = _whole([row.after for row in effects.rows])
    if after is None:
        return (
            gettext("No result was granted credit in the period after the change.")
            if effects.is_over
            else gettext("No result has been granted credit since the change.")
        )
    if before is None:
        return gettext(
            "There is nothing to compare with: no result was granted credit in the period before the change."
        )
    flops, days = after[0] / before[0] - 1 if before[0] else None, after[1] / before[1] - 1 if before[1] else None
    facts = {
        "flops": _moved(flops),
        "days": _moved(days),
        "before": localised(f"{before[2]:,}"),
        "after": localised(f"{after[2]:,}"),
    }
    if effects.is_part:
        text = gettext(
            "Credit per estimated FLOP: %(flops)s. Results read: %(before)s before, %(after)s after. Other things may "
            "have changed at the same time."
        )
    else:
        text = gettext(
            "Credit per estimated FLOP: %(flops)s. Credit per day: %(days)s. Results granted: %(before)s before, "
            "%(after)s after. Other things may have changed at the same time."
        )
    return text % facts


def _whole(sides: list[Side | None]) -> tuple[float, float, int] | None:
    """Return totals over all versions: credit per FLOPs, credit per day, number of results."""
    there = [side for side in sides if side is not None]
    if not there:
        return None
    flops = sum(side.per_day / side.per_flops for side in there if side.per_flops)
    per_day = sum(side.per_day for side in there)
    return per_day / flops if flops else 0.0, per_day, sum(side.ngranted for side in there)


def _moved(share: float | None) -> str:
    if share is None:
        return gettext("cannot be compared")
    if abs(share) < 0.005:
        return gettext("unchanged")
    percent = f"{abs(share):.0%}".replace("%", " %")
    return (gettext("up by %(percent)s") if share > 0 else gettext("down by %(percent)s")) % {"percent": percent}
