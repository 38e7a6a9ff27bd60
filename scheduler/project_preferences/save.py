"""Read, save and remove what a volunteer prefers for this project; computers get it with their next reply."""

from __future__ import annotations

from django.db import transaction

from portal.models import User
from scheduler.engine.project_preferences import VENUES, ProjectPreferences, from_stored
from scheduler.models import UserPreferences


def read_saved(user: User) -> dict[str, ProjectPreferences]:
    """By place; "" is for those without their own. Empty if nothing was ever chosen."""
    row = UserPreferences.objects.filter(user=user).only("of_project").first()
    return {venue: from_stored(stored) for venue, stored in (row.of_project if row else {}).items()}


def save(user: User, venue: str, chosen: ProjectPreferences) -> None:
    """Save what holds at a place. One transaction; locks the row of the volunteer's preferences."""
    if venue not in VENUES:
        raise ValueError(f"{venue!r} is no place that clients know")
    _write(user, venue, chosen)


def forget(user: User, venue: str) -> None:
    """Computers at this place follow what holds for everywhere; without a place, nothing is preferred there any more.

    That is kept as such, since clients would else keep what they were told last.
    """
    _write(user, venue, None if venue else ProjectPreferences())


@transaction.atomic
def _write(user: User, venue: str, chosen: ProjectPreferences | None) -> None:
    UserPreferences.objects.get_or_create(user=user)
    row = UserPreferences.objects.select_for_update().only("of_project").get(user=user)
    places = {name: stored for name, stored in row.of_project.items() if name != venue}
    if chosen is not None:
        places[venue] = chosen.stored()
    # Without it, computers that had a place's preferences would never be told that these are gone.
    row.of_project = {"": ProjectPreferences().stored(), **places}
    row.save(update_fields=["of_project"])
