"""What pages show of badges: those that a volunteer has, and those that can be reached."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from accounting.badges.texts import rule_text
from accounting.models import Badge, BadgeAward
from portal.models import User


@dataclass(frozen=True, slots=True)
class Held:
    """A badge that a volunteer has. ``rule``: what it was for on that day; ``was_changed``: the rule is another now."""

    title: str
    text: str
    rule: str
    day: dt.date
    was_changed: bool = False


@dataclass(frozen=True, slots=True)
class BadgePage:
    """``is_on``: the operators award any badges."""

    held: list[Held]
    open: list[tuple[str, str]]
    is_on: bool


def read_page(user: User) -> BadgePage:
    """Two statements."""
    held = list(BadgeAward.objects.filter(user=user).select_related("badge"))
    has = {award.badge_id for award in held}
    active = list(Badge.objects.filter(is_active=True))
    return BadgePage(
        held=[
            Held(award.badge.title, award.badge.text, award.rule, award.day, rule_text(award.badge) != award.rule)
            for award in held
        ],
        open=[(badge.title, rule_text(badge)) for badge in active if badge.pk not in has],
        is_on=bool(active),
    )


def titles_until(user: User, last: dt.date) -> list[str]:
    """The titles of the badges that the volunteer had by the end of a day, in the order in which they were reached."""
    return list(BadgeAward.objects.filter(user=user, day__lte=last).values_list("badge__title", flat=True))
