"""Read the pages of badges: those that a volunteer has, and those still to earn."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from extras.badges.models import Badge, BadgeAward
from extras.badges.texts import kept_rule, rule_text
from portal.languages.supplied import shown
from portal.models import User


@dataclass(frozen=True, slots=True)
class HeldBadge:
    """A badge that a volunteer has. ``rule``: its rule on that day; ``was_changed``: the rule has changed since."""

    title: str
    text: str
    rule: str
    day: dt.date
    was_changed: bool = False


@dataclass(frozen=True, slots=True)
class BadgePage:
    """``is_on``: the operators award any badges."""

    held: list[HeldBadge]
    open: list[tuple[str, str]]
    is_on: bool


def read_page(user: User) -> BadgePage:
    """Read the page; two statements."""
    held = list(BadgeAward.objects.filter(user=user).select_related("badge"))
    has = {award.badge_id for award in held}
    active = list(Badge.objects.filter(is_active=True))
    return BadgePage(
        held=[_held(award) for award in held],
        open=[(shown(badge.title), rule_text(badge)) for badge in active if badge.pk not in has],
        is_on=bool(active),
    )


def _held(award: BadgeAward) -> HeldBadge:
    """Return an unchanged rule in the reader's language; a changed one as it was stored."""
    badge, was_changed = award.badge, _was_changed(award)
    rule = award.rule if was_changed else rule_text(badge)
    return HeldBadge(shown(badge.title), shown(badge.text), rule, award.day, was_changed)


def _was_changed(award: BadgeAward) -> bool:
    return kept_rule(award.badge) != award.rule


def titles_until(user: User, last: dt.date) -> list[str]:
    """Return the titles of the badges that the volunteer had by the end of a day, in the order earned.

    If a rule has changed since, the title says what the badge was for, to avoid confusion with its present meaning.
    """
    held = BadgeAward.objects.filter(user=user, day__lte=last).select_related("badge")
    return [f"{award.badge.title} ({award.rule})" if _was_changed(award) else award.badge.title for award in held]
