"""How fast apps compute, as granted credit says, and how late a submitter's next batch may come."""

from __future__ import annotations

import datetime as dt
from typing import Final

from django.db.models import Sum

from credit.engine.recent_credit import decayed
from credit.engine.rules import Rules
from credit.models import App, AppVersion
from extras.remote_jobs.models import Submitter
from extras.remote_jobs.wire.jobs import LEAST_PRIORITY
from portal.models import User

_FLOPS_PER_CREDIT_A_DAY: Final = 1e9 / 200
"""A Cobblestone is a two-hundredth of a day at 1 GFLOPS."""
_LEAST_CREDIT_A_DAY: Final = 200
_MINUTE: Final = dt.timedelta(minutes=1)
_FARTHEST: Final = dt.timedelta(days=3650)


def flops(now: dt.datetime, app: App | None = None) -> float:
    """FLOPS of an app, or of all, by the credit that was lately granted in a day; 1 GFLOPS at least."""
    versions = AppVersion.objects.filter(app__is_deprecated=False)
    versions = versions if app is None else versions.filter(app=app)
    rows = versions.exclude(expavg_at=None).values_list("expavg_credit", "expavg_at")
    rules = Rules.published()
    credit = sum(decayed(credit, at.timestamp(), now.timestamp(), rules) for credit, at in rows if at is not None)
    return max(credit, _LEAST_CREDIT_A_DAY) * _FLOPS_PER_CREDIT_A_DAY


def take_share(user: User, fpops: float, now: dt.datetime) -> int:
    """Add this work to what the submitter has under way; the priority of its jobs: minus the minutes until it would all
    be done, if each submitter had their share of the project. Locks the submitter's row.
    """
    Submitter.objects.get_or_create(user=user)
    row = Submitter.objects.select_for_update(no_key=True).get(user=user)
    total = Submitter.objects.aggregate(total=Sum("share"))["total"]
    begins_at = max(row.logical_end_at or now, now)
    secs = fpops / (flops(now) * row.share / total)
    row.logical_end_at = min(begins_at + dt.timedelta(seconds=min(secs, _FARTHEST.total_seconds())), now + _FARTHEST)
    row.save(update_fields=["logical_end_at"])
    return max(LEAST_PRIORITY, -int((row.logical_end_at - now) / _MINUTE))
