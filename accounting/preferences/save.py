"""Save and remove a volunteer's computing preferences; clients get them with their next reply."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.db import transaction
from django.utils import timezone

from accounting.engine.preferences import VENUES, canonical, complete, days_of, own_venues
from accounting.models import AccountSettings
from portal.models import User

EVERYWHERE = ""
"""The venue of the set for all places that have none of their own."""


class NothingForEverywhere(Exception):
    """A place can differ only from preferences that are saved for everywhere."""


@dataclass(frozen=True, slots=True)
class Saved:
    """A saved set: complete, and the hours of the days that differ, 0 for Sunday."""

    values: dict[str, float]
    days: dict[int, dict[str, float]]


def read_saved(user: User) -> dict[str, Saved]:
    """The saved sets by venue; empty if the clients keep their own."""
    saved = AccountSettings.objects.filter(user=user).first()
    if saved is None or not saved.preferences:
        return {}
    sets = {EVERYWHERE: saved.preferences, **own_venues(saved.preferences)}
    return {venue: Saved(complete(chosen), days_of(chosen)) for venue, chosen in sets.items()}


def read_sets(user: User) -> dict[str, dict[str, float]]:
    """The saved sets by venue, each complete, without the days."""
    return {venue: saved.values for venue, saved in read_saved(user).items()}


def save_set(
    user: User, venue: str, values: Mapping[str, object], days: Mapping[int, Mapping[str, float]] | None = None
) -> None:
    """Save a set, completed, for everywhere or for one place; raises NothingForEverywhere and ValueError.

    ``days``: hours of the days that differ, 0 for Sunday.
    """
    if venue not in (EVERYWHERE, *VENUES):
        raise ValueError(f"{venue!r} is no place that clients know")
    chosen = canonical({**values, "days": {str(day): dict(hours) for day, hours in (days or {}).items()}})
    AccountSettings.objects.get_or_create(user=user)
    with transaction.atomic():
        saved = AccountSettings.objects.select_for_update().get(user=user)
        venues = {name: canonical(own) for name, own in own_venues(saved.preferences).items()}
        if venue == EVERYWHERE:
            saved.preferences = {**chosen, "venues": venues}
        elif not saved.preferences:
            raise NothingForEverywhere
        else:
            saved.preferences = {**canonical(saved.preferences), "venues": {**venues, venue: chosen}}
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
            venues = {name: canonical(own) for name, own in own_venues(saved.preferences).items() if name != venue}
            saved.preferences = {**canonical(saved.preferences), "venues": venues}
            saved.preferences_at = timezone.now()
        saved.save(update_fields=["preferences", "preferences_at"])


def save_client_display(user: User, team_name: str, no_project_notices: bool) -> None:
    """What BOINC shows on the volunteer's computers: a team's name, and whether projects' notices are left out."""
    AccountSettings.objects.update_or_create(
        user=user, defaults={"team_name": team_name, "no_project_notices": no_project_notices}
    )
