"""Consents that volunteers give and withdraw: their subjects, their wordings, and their history.

Apps declare them (`portal.extras`) and store their effects in tables of their own; only what was said, and when, is
here. A text that people agreed to never changes: a new text is a new wording at the end.
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
"""The most rows on the page; a copy of one's data has all."""


@dataclass(frozen=True, slots=True)
class Wording:
    """The text beside the box that a volunteer ticks: what they agree to, and what follows from it."""

    text: StrOrPromise
    details: StrOrPromise


@dataclass(frozen=True, slots=True)
class ConsentKind:
    """A consent that volunteers can give; ``view``: its page. Wordings count from 1, and the last one is shown."""

    key: str
    title: StrOrPromise
    view: str
    wordings: tuple[Wording, ...]

    @property
    def shown(self) -> Wording:
        return self.wordings[-1]


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """A row of the history on a page; without title and wording if the site no longer has the kind."""

    event: ConsentEvent
    title: StrOrPromise
    wording: Wording | None


@cache
def kinds() -> dict[str, ConsentKind]:
    """The kinds of the apps in use, by key."""
    return {kind.key: kind for app in apps_in_use() for kind in app.consents()}


def record(
    user_id: int,
    kind: ConsentKind,
    *,
    is_given: bool,
    now: dt.datetime,
    origin: ConsentEvent.Origin = ConsentEvent.Origin.PAGE,
) -> None:
    """Record that a consent was given or withdrawn.

    Call it in the transaction that changes its effects, and only if something changes.
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


def history(user: User) -> list[HistoryRow]:
    """The consents that the volunteer gave and withdrew, newest first."""
    return [_past(event) for event in ConsentEvent.objects.filter(user=user)[:HISTORY_SHOWN]]


def standing(user: User) -> list[tuple[ConsentKind, ConsentEvent | None]]:
    """Each kind with the volunteer's last event of it."""
    latest = ConsentEvent.objects.filter(user=user).order_by("kind", "-id").distinct("kind")
    last = {event.kind: event for event in latest}
    return [(kind, last.get(kind.key)) for kind in kinds().values()]


def _past(event: ConsentEvent) -> HistoryRow:
    kind = kinds().get(event.kind)
    if kind is None:
        return HistoryRow(event, event.kind, None)
    is_known = event.wording is not None and 1 <= event.wording <= len(kind.wordings)
    return HistoryRow(event, kind.title, kind.wordings[event.wording - 1] if is_known and event.wording else None)
