"""Carry out a proposed change: one transaction, in which the row is locked and compared with what was proposed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Model
from django.utils.translation import gettext

from portal.audit import signed_log, two_persons
from portal.audit.proposals import Proposal
from portal.audit.register import label_of
from portal.audit.steps import forecast_of, operation_named
from portal.audit.values import Line, in_words, restored, stored
from portal.audit.who import changes_by
from portal.models import Change, User


class NothingToDo(Exception):
    """The row already has the values."""


@dataclass
class ChangedMeanwhile(Exception):
    """Somebody changed the row after the proposal was made; ``lines``: from the values seen to those there now."""

    lines: list[Line]


def carry_out(proposal: Proposal, person: User | None, reason: str) -> Change:
    """Carry out a proposal, and return the change that was recorded.

    ``person`` None: a command does it. Locks the signed log if the change may belong in it, then what the operation
    names, then the row. Raises `ChangedMeanwhile`, `NothingToDo`, ValidationError, or DoesNotExist if the row is gone.
    """
    model = proposal.model_class()
    operation = operation_named(proposal.operation)
    undone = Change.objects.filter(pk=proposal.undoes).first() if proposal.undoes else None
    with transaction.atomic(), changes_by(person, reason, undone) as made:
        signed_log.lock_for(model)
        if operation is not None:
            operation.lock(proposal)
        row = model._default_manager.select_for_update(no_key=True).get(pk=proposal.pk)
        if person is not None and two_persons.is_guarded(row, proposal):
            raise ValidationError(
                gettext("Two persons are needed for this. Do it on its own page, which asks for a second one.")
            )
        if differing := differences(row, proposal):
            raise ChangedMeanwhile(differing)
        if operation is not None:
            operation.carry_out(row, proposal)
        else:
            _save(row, proposal)
        if not made:
            raise NothingToDo
        if forecast := forecast_of(model):
            forecast.remember(made[0], proposal)
    return made[0]


def differences(row: Model, proposal: Proposal) -> list[Line]:
    """Fields that are not as they were when the change was proposed."""
    differing = []
    for name, (before, _) in proposal.changes.items():
        now = stored(row, name)
        if now != before:
            field: Any = row._meta.get_field(name)
            differing.append(Line(name, label_of(type(row), name), in_words(field, before), in_words(field, now)))
    return differing


def _save(row: Model, proposal: Proposal) -> None:
    for name, (_, after) in proposal.changes.items():
        field: Any = row._meta.get_field(name)
        setattr(row, field.attname, restored(field, after))
    others = [field.name for field in row._meta.fields if field.name not in proposal.changes]
    row.full_clean(exclude=others)
    row.save(update_fields=list(proposal.changes))
