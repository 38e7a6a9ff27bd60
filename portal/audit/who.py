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
class ChangeContext:
    """Changes under way; ``made``: those recorded so far."""

    person: Callable[[], User | None]
    reason: str = ""
    undoes: Change | None = None
    made: list[Change] = field(default_factory=list)


_context: ContextVar[ChangeContext | None] = ContextVar("making_changes", default=None)


@contextmanager
def changes_by(
    person: Callable[[], User | None] | User | None, reason: str = "", undoes: Change | None = None
) -> Iterator[list[Change]]:
    """Record what is changed inside in this person's name; yields the list of changes as they are recorded.

    ``person`` may be a function, if finding out costs something; it is called at the first change.
    """
    context = ChangeContext(person if callable(person) else lambda: person, reason, undoes)
    token = _context.set(context)
    try:
        yield context.made
    finally:
        _context.reset(token)


def person_now() -> User | None:
    """The person making changes; None: a command, or the site itself."""
    context = _context.get()
    return context.person() if context is not None else None


def sign(sender: type[Change], instance: Change, **_: Any) -> None:
    """Add who made a change, and why, before it is stored. Without a person, a command or the site itself made it."""
    context = _context.get()
    instance.changes = {name: [_json(value) for value in pair] for name, pair in (instance.changes or {}).items()}
    if context is None or not instance._state.adding:
        return
    instance.actor = instance.actor or context.person()
    instance.reason = instance.reason or context.reason
    instance.undoes = instance.undoes or context.undoes
    context.made.append(instance)


def _json(value: Any) -> Any:
    """Make infinite numbers text, as JSON has none. The database refuses them in settings, but after the change."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
