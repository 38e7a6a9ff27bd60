"""Who changes settings just now, and why: what is saved meanwhile is kept under that name.

django-auditlog notices each save of a registered row (`portal.audit.register`). It has a context of its own for the
person, which forgets the outer of two and leaves a receiver behind for each; so a variable says it here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from portal.models import Change, User


@dataclass(slots=True)
class Making:
    """Changes under way; ``made``: those that were kept so far."""

    person: Callable[[], User | None]
    reason: str = ""
    undoes: Change | None = None
    made: list[Change] = field(default_factory=list)


_making: ContextVar[Making | None] = ContextVar("making_changes", default=None)


@contextmanager
def changes_by(
    person: Callable[[], User | None] | User | None, reason: str = "", undoes: Change | None = None
) -> Iterator[list[Change]]:
    """Keep what is changed inside under this person's name; yields the changes as they are kept.

    ``person``: a function if it costs something to find out; it is called once something is changed.
    """
    making = Making(person if callable(person) else lambda: person, reason, undoes)
    token = _making.set(making)
    try:
        yield making.made
    finally:
        _making.reset(token)


def person_now() -> User | None:
    """Who makes changes just now; None: a command, or the site itself."""
    making = _making.get()
    return making.person() if making is not None else None


def sign(sender: type[Change], instance: Change, **_: Any) -> None:
    """Notes who made a change, and why, before it is kept. If nobody did, a command or the site itself made it."""
    making = _making.get()
    instance.changes = {name: [_json(value) for value in pair] for name, pair in (instance.changes or {}).items()}
    if making is None or not instance._state.adding:
        return
    instance.actor = instance.actor or making.person()
    instance.reason = instance.reason or making.reason
    instance.undoes = instance.undoes or making.undoes
    making.made.append(instance)


def _json(value: Any) -> Any:
    """JSON has no infinite numbers. The database refuses them in settings, but the change is written before."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
