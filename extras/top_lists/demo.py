"""Top lists of the demo: its volunteers with a name there."""

from __future__ import annotations

import datetime as dt
from typing import Final

from extras.top_lists import consent, count
from portal.models import User

NAMES: Final = ("Ilse", "Tariq", "Noor")
"""Volunteers of the demo's history (`manage.py simulate_history`), if there is one."""


def list_some(now: dt.datetime) -> None:
    """Have them agree to be shown, and count the lists. Safe to repeat."""
    for user in User.objects.filter(name__in=NAMES).order_by("pk"):
        consent.give(user, "", now)
    count.count()
    count.count_apps()
