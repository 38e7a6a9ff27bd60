"""Read, save and remove a volunteer's preferences for this project; computers get them with their next reply."""

from __future__ import annotations

from django.db import transaction

from portal.models import User
from scheduler.engine.project_preferences import VENUES, ProjectPreferences, from_stored
from scheduler.models import UserPreferences


def read_saved(user: User) -> dict[str, ProjectPreferences]:
    """Return the preferences by place; "" is for places without their own. Empty if nothing was ever chosen."""
    row = UserPreferences.objects.filter(user=user).only("of_project").first()
    return {venue: from_stored(stored) for venue, stored in (row.of_project if row else {}).items()}


def save(user: User, venue: str, chosen: ProjectPreferences) -> None:
    """Save the preferences for a place. One transaction; locks the row of the volunteer's preferences."""
    if venue not in VENUES:
        raise ValueError(f"{venue!r} is not a place that clients know")
    _write(user, venue, chosen)


def forget(user: User, venue: str) -> None:
    """Remove a place's preferences, so that its computers follow the general ones; without a place, remove the general
    ones.

    The removal is stored, because clients would otherwise keep what they were last sent.
    """
    _write(user, venue, None if venue else ProjectPreferences())


@transaction.atomic
def _write(user: User, venue: str, chosen: ProjectPreferences | None) -> None:
    UserPreferences.objects.get_or_create(user=user)
    row = UserPreferences.objects.select_for_update().only("of_project").get(user=user)
    places = {name: stored for name, stored in row.of_project.items() if name != venue}
    if chosen is not None:
        places[venue] = chosen.stored()
    # Otherwise, computers that had a place's preferences would never be told that they are gone.
    row.of_project = {"": ProjectPreferences().stored(), **places}
    row.save(update_fields=["of_project"])
