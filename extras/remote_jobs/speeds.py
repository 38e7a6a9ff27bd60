"""How fast apps compute, derived from granted credit."""

from __future__ import annotations

import datetime as dt
from typing import Final

from credit.engine.recent_credit import decayed
from credit.engine.rules import Rules
from credit.models import App, AppVersion

_FLOPS_PER_CREDIT_A_DAY: Final = 1e9 / 200
"""A Cobblestone is 1/200 of a day at 1 GFLOPS."""
_LEAST_CREDIT_A_DAY: Final = 200


def flops(now: dt.datetime, app: App | None = None) -> float:
    """Return the FLOPS of an app, or of all, by the credit recently granted in a day; at least 1 GFLOPS."""
    versions = AppVersion.objects.filter(app__is_deprecated=False)
    versions = versions if app is None else versions.filter(app=app)
    rows = versions.exclude(expavg_at=None).values_list("expavg_credit", "expavg_at")
    rules = Rules.published()
    credit = sum(decayed(credit, at.timestamp(), now.timestamp(), rules) for credit, at in rows if at is not None)
    return max(credit, _LEAST_CREDIT_A_DAY) * _FLOPS_PER_CREDIT_A_DAY
