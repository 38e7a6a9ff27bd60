"""Who is changing settings, and why: changes saved meanwhile are recorded in that name.

django-auditlog notices each save of a registered row (`portal.audit.register`). Its own context for the person forgets
the outer of two nested ones and leaves a receiver behind each time, so a context variable is used instead.
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
    """Changes under way; ``made``: those recorded so far."""

    person: Callable[[], User | None]
    reason: str = ""
    undoes: Change | None = None
    made: list[Change] = field(default_factory=list)


_making: ContextVar[Making | None] = ContextVar("making_changes", default=None)


@contextmanager
def changes_by(
    person: Callable[[], User | None] | User | None, reason: str = "", undoes: Change | None = None
) -> Iterator[list[Change]]:
    """Record what is changed inside in this person's name; yields the list of changes as they are recorded.

    ``person`` may be a function, if finding out costs something; it is called at the first change.
    """
    making = Making(person if callable(person) else lambda: person, reason, undoes)
    token = _making.set(making)
    try:
        yield making.made
    finally:
        _making.reset(token)


def person_now() -> User | None:
    """The person making changes; None: a command, or the site itself."""
    making = _making.get()
    return making.person() if making is not None else None


def sign(sender: type[Change], instance: Change, **_: Any) -> None:
    """Add who made a change, and why, before it is stored. Without a person, a command or the site itself made it."""
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
