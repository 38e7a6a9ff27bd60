"""Undoing a change: the proposal that restores the earlier values."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import FieldDoesNotExist
from django.db.models import Model
from django.utils.formats import date_format
from django.utils.text import capfirst
from django.utils.translation import gettext

from portal.audit.proposals import Proposal
from portal.audit.register import fields_of, is_audited, label_of
from portal.audit.steps import operation_named
from portal.audit.values import Line, in_words, stored
from portal.models import Change

OPERATION = "operation"
"""The key in a change's additional data that names the operation which made it."""


def operation_of(change: Change) -> str:
    name = str((change.additional_data or {}).get(OPERATION, ""))
    return name if operation_named(name) else ""


def row_of(change: Change) -> Model | None:
    """The row that was changed; None if it is gone."""
    model = change.content_type.model_class()
    return model._default_manager.filter(pk=change.object_pk).first() if model is not None else None


def proposal_of(change: Change, row: Model) -> Proposal | None:
    """The proposal that restores the earlier values; None if there is nothing to restore.

    Fields that the site no longer has, and secrets, whose values are not stored, are left out.
    """
    operation = operation_named(operation_of(change))
    if operation is not None and operation.undo:
        return operation.undo(change)
    if change.action != Change.Action.UPDATE or not is_audited(type(row)):
        return None
    names = {field.name for field in fields_of(type(row))}
    changes = {}
    for name, (before, _) in (change.changes or {}).items():
        if name in names and (now := stored(row, name)) != before:
            changes[name] = [now, before]
    if not changes:
        return None
    return Proposal(model=row._meta.label, pk=row.pk, changes=changes, undoes=change.pk)


def changed_again(change: Change, row: Model) -> list[Line]:
    """Fields that were changed again: from the value that this change gave them to the present one."""
    lines: list[Line] = []
    if name := operation_of(change):
        return _done_again(change, name)
    if change.action != Change.Action.UPDATE or not is_audited(type(row)):
        return lines
    for name, (_, after) in (change.changes or {}).items():
        try:
            field: Any = row._meta.get_field(name)
        except FieldDoesNotExist:
            continue
        if field in fields_of(type(row)) and stored(row, name) != after:
            now = in_words(field, stored(row, name))
            lines.append(Line(name, label_of(type(row), name), in_words(field, after), now))
    return lines


def _done_again(change: Change, operation: str) -> list[Line]:
    """The operation's last change of the row, if it is later than this one."""
    same = Change.objects.filter(content_type=change.content_type, object_pk=change.object_pk)
    later = same.filter(pk__gt=change.pk, **{f"additional_data__{OPERATION}": operation}).order_by("pk").last()
    if later is None:
        return []
    text = gettext("replaced on %(time)s UTC")
    times = (text % {"time": date_format(entry.timestamp, "DATETIME_FORMAT")} for entry in (change, later))
    return [Line(operation, capfirst(operation), *times)]
