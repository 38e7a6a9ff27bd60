"""Consents that volunteers give and withdraw: what each is about, in which words, and the history of them.

Apps say which there are (`portal.extras`) and keep what is agreed to in tables of their own; here is only what was
said, and when. A text that people agreed to never changes: a new one is a new wording at the end.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from django.utils.translation import get_language

from portal.extras import apps_in_use
from portal.models import ConsentEvent, User

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

HISTORY_SHOWN: Final = 200
"""Rows of the page; a copy of one's data has all."""


@dataclass(frozen=True, slots=True)
class Wording:
    """A text as it stands beside the box that a volunteer ticks: what they agree to, and what follows from it."""

    text: StrOrPromise
    details: StrOrPromise


@dataclass(frozen=True, slots=True)
class ConsentKind:
    """Something that a volunteer can agree to; ``view``: the page where. Wordings count from 1, the last is shown."""

    key: str
    title: StrOrPromise
    view: str
    wordings: tuple[Wording, ...]

    @property
    def shown(self) -> Wording:
        return self.wordings[-1]


@dataclass(frozen=True, slots=True)
class Past:
    """A row of the history, as a page shows it; no title or wording where the kind is none of this site any more."""

    event: ConsentEvent
    title: StrOrPromise
    wording: Wording | None


@cache
def kinds() -> dict[str, ConsentKind]:
    """By key; of the apps that are in use."""
    return {kind.key: kind for app in apps_in_use() for kind in app.consents()}


def record(
    user_id: int,
    kind: ConsentKind,
    *,
    is_given: bool,
    now: dt.datetime,
    origin: ConsentEvent.Origin = ConsentEvent.Origin.PAGE,
) -> None:
    """Add to the history that a consent was given or withdrawn.

    Inside the transaction that changes what follows from it, and only if something does change.
    """
    on_page = origin == ConsentEvent.Origin.PAGE
    ConsentEvent.objects.create(
        user_id=user_id,
        kind=kind.key,
        is_given=is_given,
        at=now,
        wording=len(kind.wordings) if on_page else None,
        language=(get_language() or "") if on_page else "",
        origin=origin,
    )


def history(user: User) -> list[Past]:
    """What the volunteer agreed to and withdrew, the newest first."""
    return [_past(event) for event in ConsentEvent.objects.filter(user=user)[:HISTORY_SHOWN]]


def standing(user: User) -> list[tuple[ConsentKind, ConsentEvent | None]]:
    """Each kind with the last that the volunteer said of it."""
    latest = ConsentEvent.objects.filter(user=user).order_by("kind", "-id").distinct("kind")
    last = {event.kind: event for event in latest}
    return [(kind, last.get(kind.key)) for kind in kinds().values()]


def _past(event: ConsentEvent) -> Past:
    kind = kinds().get(event.kind)
    if kind is None:
        return Past(event, event.kind, None)
    is_known = event.wording is not None and 1 <= event.wording <= len(kind.wordings)
    return Past(event, kind.title, kind.wordings[event.wording - 1] if is_known and event.wording else None)
