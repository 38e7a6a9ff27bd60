"""The badges of the demo data."""

from __future__ import annotations

import datetime as dt
from typing import Final

from extras.badges.award import award_due
from extras.badges.models import Badge

BADGES: Final = ("First task", "1,000 tasks", "10,000 credits", "100,000 credits", "First hour on a GPU", "100 days")
"""The badges shipped with the site that the demo awards."""


def award_some(now: dt.datetime) -> None:
    Badge.objects.filter(title__in=BADGES).update(is_active=True, changed_at=now)
    award_due(now)
