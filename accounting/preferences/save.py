"""Save and remove a volunteer's computing preferences; clients get them with their next reply."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.db import transaction
from django.utils import timezone

from accounting.engine.preferences import VENUES, canonical, complete, days_of, has_everywhere, own_venues
from accounting.models import AccountSettings
from accounting.running_tasks.follow import forget_lists
from portal.models import User

EVERYWHERE = ""
"""The venue of the set for all places without their own."""


@dataclass(frozen=True, slots=True)
class Saved:
    """A saved set: complete, and the hours of the days that differ, 0 for Sunday."""

    values: dict[str, float]
    days: dict[int, dict[str, float]]


def read_saved(user: User) -> dict[str, Saved]:
    """Read the saved sets by venue; empty if the clients keep their own."""
    saved = AccountSettings.objects.filter(user=user).first()
    if saved is None:
        return {}
    sets = {EVERYWHERE: saved.preferences} if has_everywhere(saved.preferences) else {}
    sets |= own_venues(saved.preferences)
    return {venue: Saved(complete(chosen), days_of(chosen)) for venue, chosen in sets.items()}


def save_set(
    user: User, venue: str, values: Mapping[str, object], days: Mapping[int, Mapping[str, float]] | None = None
) -> None:
    """Save a set, completed, for everywhere or for one place; raises ValueError if clients do not know it.

    ``days``: hours of the days that differ, 0 for Sunday.
    """
    if venue not in (EVERYWHERE, *VENUES):
        raise ValueError(f"{venue!r} is no place that clients know")
    chosen = canonical({**values, "days": {str(day): dict(hours) for day, hours in (days or {}).items()}})
    AccountSettings.objects.get_or_create(user=user)
    with transaction.atomic():
        saved = AccountSettings.objects.select_for_update().get(user=user)
        sets = _stored(saved.preferences)
        sets[venue] = chosen
        saved.preferences = _joined(sets)
        saved.preferences_at = timezone.now()
        saved.save(update_fields=["preferences", "preferences_at"])


def forget_set(user: User, venue: str) -> None:
    """Remove one set.

    Computers at a place then follow the set for everywhere. Those without any set keep their present one.
    """
    with transaction.atomic():
        saved = AccountSettings.objects.select_for_update().filter(user=user).first()
        if saved is None or not saved.preferences:
            return
        sets = _stored(saved.preferences)
        sets.pop(venue, None)
        saved.preferences = _joined(sets)
        saved.preferences_at = timezone.now() if sets else None
        saved.save(update_fields=["preferences", "preferences_at"])


def _stored(preferences: Mapping[str, object]) -> dict[str, dict[str, object]]:
    """Return the sets by venue as they are stored."""
    sets = {EVERYWHERE: canonical(preferences)} if has_everywhere(preferences) else {}
    return sets | {name: canonical(own) for name, own in own_venues(preferences).items()}


def _joined(sets: Mapping[str, Mapping[str, object]]) -> dict[str, object]:
    venues = {name: own for name, own in sets.items() if name != EVERYWHERE}
    return {**sets.get(EVERYWHERE, {}), "venues": venues} if sets else {}


def save_client_display(user: User, team_name: str, no_project_notices: bool, sends_tasks: bool = True) -> None:
    """Save what BOINC shows on the volunteer's computers: a team's name, and whether projects' notices are left out.

    ``sends_tasks``: whether the computers list their tasks here. If not, the listed tasks are forgotten.
    """
    chosen = {"team_name": team_name, "no_project_notices": no_project_notices, "sends_tasks": sends_tasks}
    AccountSettings.objects.update_or_create(user=user, defaults=chosen)
    if not sends_tasks:
        forget_lists(User.objects.filter(pk=user.pk))
