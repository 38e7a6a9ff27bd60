"""Records a change of a row that volunteers change too: only what an operator did, and nothing about the person."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import Model

from portal.audit.register import hide
from portal.audit.values import stored
from portal.languages.messages import Message
from portal.models import Change


def record(row: Model, words: Message, before: Model | None, after: Model | None, secret: Iterable[str] = ()) -> None:
    """Record the differences, secrets without their values; ``before`` None: it was added, ``after`` None: deleted.

    ``words`` describe the row. Such a change is shown but cannot be undone: the row is the volunteer's.
    """
    secret = set(secret)
    changes = {}
    for field in row._meta.concrete_fields:
        if field.primary_key or not (field.editable or field.name in secret):
            continue
        pair = [stored(side, field.name) if side is not None else None for side in (before, after)]
        if pair[0] != pair[1]:
            changes[field.name] = [hide(str(value)) for value in pair] if field.name in secret else pair
    action = Change.Action.UPDATE
    if before is None or after is None:
        action = Change.Action.CREATE if before is None else Change.Action.DELETE
    if changes:
        Change.objects.log_create(row, action=action, changes=changes, object_repr=words.packed())
