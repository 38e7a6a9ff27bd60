"""How fast apps compute, as granted credit says."""

from __future__ import annotations

import datetime as dt
from typing import Final

from credit.engine.recent_credit import decayed
from credit.engine.rules import Rules
from credit.models import App, AppVersion

_FLOPS_PER_CREDIT_A_DAY: Final = 1e9 / 200
"""A Cobblestone is a two-hundredth of a day at 1 GFLOPS."""
_LEAST_CREDIT_A_DAY: Final = 200


def flops(now: dt.datetime, app: App | None = None) -> float:
    """FLOPS of an app, or of all, by the credit that was lately granted in a day; 1 GFLOPS at least."""
    versions = AppVersion.objects.filter(app__is_deprecated=False)
    versions = versions if app is None else versions.filter(app=app)
    rows = versions.exclude(expavg_at=None).values_list("expavg_credit", "expavg_at")
    rules = Rules.published()
    credit = sum(decayed(credit, at.timestamp(), now.timestamp(), rules) for credit, at in rows if at is not None)
    return max(credit, _LEAST_CREDIT_A_DAY) * _FLOPS_PER_CREDIT_A_DAY
