"""Reads teams with their sums of credit."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from django.db import connection
from django.db.models import QuerySet

from credit.models import Membership, Team
from credit.teams import sql
from portal.models import User

MAX_TEAMS = 100
"""The most teams that a search returns."""


@dataclass(frozen=True, slots=True)
class TeamSums:
    """Credit granted to a team in total, and its recent average (credits a day)."""

    nmembers: int = 0
    total_credit: float = 0.0
    expavg_credit: float = 0.0


def sums(teams: Collection[Team]) -> dict[int, TeamSums]:
    """Return the sums of these teams by number, in one statement."""
    with connection.cursor() as cursor:
        cursor.execute(sql.OF_TEAMS, {"teams": [team.pk for team in teams]})
        return {row[0]: TeamSums(*row[1:]) for row in cursor.fetchall()}


def search(words: str) -> list[Team]:
    """Search teams by words in their names, in alphabetical order; without words, return all."""
    if "\0" in words:
        return []  # PostgreSQL text cannot contain NUL
    return list(Team.objects.filter(name__icontains=words.strip()).order_by("name")[:MAX_TEAMS])


def team_of(user: User) -> Team | None:
    membership = Membership.objects.select_related("team").filter(user=user).first()
    return membership.team if membership is not None else None


def published() -> QuerySet[User]:
    """Return the volunteers whose names and teams others may know."""
    return User.objects.filter(export_consent__exports_statistics=True, deletion_asked_at=None)


def others_in(team: Team, user: User) -> list[User]:
    """Return members to whom a founder may transfer the team: only published ones, as nobody else's name is shown."""
    members = published().filter(membership__team=team).exclude(pk=user.pk)
    return list(members.order_by("membership__joined_at")[:MAX_TEAMS])
