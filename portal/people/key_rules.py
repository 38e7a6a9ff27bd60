"""Which keys of BOINC clients may end without their owner's consent. Pure.

A key in use never ends, neither at a limit nor with time. The use of a key by a client that contacts the site daily is
recorded at least every other day, so a key counts as replaced only a while after a newer one of its computer came into
use.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

FRESH_FOR: Final = dt.timedelta(days=1)
"""How long an unused key may still be on its way to its client."""
USE_NOTED_WITHIN: Final = dt.timedelta(days=2)
"""The longest time until the use of a key is recorded, besides two intervals between contacts."""


class KeyState(StrEnum):
    """The state of a computer's live key."""

    IN_USE = "in use"
    UNUSED = "unused"
    REPLACED = "replaced"
    OF_RETIRED = "of a retired computer"


class KeyFacts(NamedTuple):
    """A live key of a computer."""

    id: int
    created_at: dt.datetime
    last_used_at: dt.datetime | None

    @property
    def last_seen_at(self) -> dt.datetime:
        return self.last_used_at or self.created_at


def states_of(
    keys: Iterable[KeyFacts], retired_at: dt.datetime | None, repeat: dt.timedelta, now: dt.datetime
) -> dict[int, KeyState]:
    """The state of each of a computer's live keys; ``repeat``: the interval at which clients contact the site.

    The newest key is in use, even before its first use: the computer may have been switched off after it attached.
    """
    newest_first = sorted(keys, key=lambda key: (key.created_at, key.id), reverse=True)
    states: dict[int, KeyState] = {}
    replaced_at: dt.datetime | None = None
    for position, key in enumerate(newest_first):
        states[key.id] = _state(key, is_newest=not position, replaced_at=replaced_at, retired_at=retired_at, now=now)
        if key.last_used_at is not None and now - key.created_at > USE_NOTED_WITHIN + 2 * repeat:
            # The oldest of the newer keys that came into use long enough ago.
            replaced_at = key.created_at
    return states


def _state(
    key: KeyFacts,
    *,
    is_newest: bool,
    replaced_at: dt.datetime | None,
    retired_at: dt.datetime | None,
    now: dt.datetime,
) -> KeyState:
    if retired_at is not None and key.last_seen_at <= retired_at:
        return KeyState.OF_RETIRED
    if is_newest:
        return KeyState.IN_USE
    if key.last_used_at is None:
        return KeyState.UNUSED if now - key.created_at > FRESH_FOR else KeyState.IN_USE
    if replaced_at is not None and key.last_used_at < replaced_at:
        return KeyState.REPLACED
    return KeyState.IN_USE


_ENDED_FIRST: Final = (KeyState.UNUSED, KeyState.REPLACED, KeyState.OF_RETIRED)


def to_make_room(keys: Sequence[KeyFacts], states: dict[int, KeyState], most: int) -> list[int] | None:
    """The keys to end so that there is room for one more among ``most``; None if too many are in use.

    Keys that never came into use end first, then replaced ones, of each those seen longest ago.
    """
    too_many = len(keys) + 1 - most
    if too_many <= 0:
        return []
    endable = sorted(
        (key for key in keys if states[key.id] is not KeyState.IN_USE),
        key=lambda key: (_ENDED_FIRST.index(states[key.id]), key.last_seen_at, key.id),
    )
    return [key.id for key in endable[:too_many]] if len(endable) >= too_many else None


def outdated(
    keys: Iterable[KeyFacts], states: dict[int, KeyState], retired_at: dt.datetime | None, since: dt.datetime
) -> list[int]:
    """The keys that end with time: those not in use, and not seen since ``since``.

    Those of a retired computer stay as long after its retirement, as its next contact takes it back.
    """
    return [
        key.id
        for key in keys
        if states[key.id] is not KeyState.IN_USE
        and key.last_seen_at < since
        and not (states[key.id] is KeyState.OF_RETIRED and retired_at is not None and retired_at >= since)
    ]
