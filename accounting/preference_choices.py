"""Save and forget a volunteer's computing preferences; clients get them with their next reply."""

from __future__ import annotations

from collections.abc import Mapping

from django.db import transaction
from django.utils import timezone

from accounting.models import AccountSettings
from accounting.preferences import VENUES, complete, venue_sets
from portal.models import User

EVERYWHERE = ""
"""The venue of the set that counts wherever a place has none of its own."""


class NothingForEverywhere(Exception):
    """A place can differ only from preferences that are saved for everywhere."""


def read_sets(user: User) -> dict[str, dict[str, float]]:
    """The saved sets by venue, each complete; empty if the clients keep their own."""
    saved = AccountSettings.objects.filter(user=user).first()
    if saved is None or not saved.preferences:
        return {}
    return {EVERYWHERE: complete(saved.preferences), **venue_sets(saved.preferences)}


def save_set(user: User, venue: str, values: Mapping[str, object]) -> None:
    """Save a set, completed, for everywhere or for one place; raises NothingForEverywhere and ValueError."""
    if venue not in (EVERYWHERE, *VENUES):
        raise ValueError(f"{venue!r} is no place that clients know")
    AccountSettings.objects.get_or_create(user=user)
    with transaction.atomic():
        saved = AccountSettings.objects.select_for_update().get(user=user)
        if venue == EVERYWHERE:
            saved.preferences = {**complete(values), "venues": venue_sets(saved.preferences)}
        elif not saved.preferences:
            raise NothingForEverywhere
        else:
            venues = {**venue_sets(saved.preferences), venue: complete(values)}
            saved.preferences = {**complete(saved.preferences), "venues": venues}
        saved.preferences_at = timezone.now()
        saved.save(update_fields=["preferences", "preferences_at"])


def forget_set(user: User, venue: str) -> None:
    """Let a place follow the set for everywhere; or, for everywhere, let each client keep what it has."""
    with transaction.atomic():
        saved = AccountSettings.objects.select_for_update().filter(user=user).first()
        if saved is None or not saved.preferences:
            return
        if venue == EVERYWHERE:
            saved.preferences, saved.preferences_at = {}, None
        else:
            venues = {name: own for name, own in venue_sets(saved.preferences).items() if name != venue}
            saved.preferences = {**complete(saved.preferences), "venues": venues}
            saved.preferences_at = timezone.now()
        saved.save(update_fields=["preferences", "preferences_at"])
