"""Top lists of the demo: those of its volunteers who have a name and credit, and are not the visitor."""

from __future__ import annotations

import datetime as dt

from extras.top_lists import consent, count
from portal.models import User


def list_some(volunteer: User, now: dt.datetime) -> None:
    """They agree to be shown, and the lists are counted. Safe to repeat."""
    for user in (
        User.objects.filter(credit__total_credit__gt=0).exclude(name="").exclude(pk=volunteer.pk).order_by("pk")
    ):
        consent.give(user, "", now)
    count.count()
    count.count_apps()
