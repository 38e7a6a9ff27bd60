"""Give names to some of the other volunteers in the demo's history, and put two of them into a team."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import Final

from credit.models import Membership, Team
from extras.laboratory.trials import demo_texts
from extras.laboratory.trials.population import Cheat, Computer
from portal.models import User

NAMES: Final = ("Ilse", "Tariq", "Noor")
TEAM: Final = "Gravel Bar"
NMEMBERS: Final = 2


def choose(computers: Iterable[Computer], since: dt.datetime) -> list[User]:
    """Name three volunteers with honest claims, and put two of them into a team, before any of them has credit."""
    false = {computer.user_id for computer in computers if computer.cheat != Cheat.NONE}
    honest = {computer.user_id for computer in computers} - false
    users = list(User.objects.filter(pk__in=honest).order_by("pk")[: len(NAMES)])
    for user, name in zip(users, NAMES, strict=False):
        user.name = name
    User.objects.bulk_update(users, ["name"])
    if users:
        team = Team.objects.create(name=TEAM, description=demo_texts.TEAM, founder=users[0], created_at=since)
        Membership.objects.bulk_create(Membership(user=user, team=team, joined_at=since) for user in users[:NMEMBERS])
    return users
