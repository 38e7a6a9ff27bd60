"""Top lists of the demo: its volunteers who have a name there."""

from __future__ import annotations

import datetime as dt
from typing import Final

from extras.top_lists import consent, count
from portal.models import User

NAMES: Final = ("Ilse", "Tariq", "Noor")
"""Volunteers of the demo's history (`manage.py simulate_history`), if there is one."""


def list_some(now: dt.datetime) -> None:
    """They agree to be shown, and the lists are counted. Safe to repeat."""
    for user in User.objects.filter(name__in=NAMES).order_by("pk"):
        consent.give(user, "", now)
    count.count()
    count.count_apps()
