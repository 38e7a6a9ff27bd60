"""Which settings are audited: a model with its fields. Whatever saves or deletes a row of it leaves a change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from auditlog.registry import auditlog
from django.core.exceptions import FieldDoesNotExist
from django.db.models import Model
from django.utils.text import capfirst
from django.utils.translation import gettext_noop

HIDDEN = gettext_noop("(not shown)")
NOTHING = gettext_noop("(none)")


class Audited(NamedTuple):
    """A table of settings: changes of its editable fields are kept.

    State that the site itself writes is in fields that cannot be edited: it is left out. Bulk writes and ``update()``
    leave no change, so they are for state. ``secret``: fields of which it is kept that they changed, without their
    values. ``signed``: fields whose changes come into the signed log, too.
    """

    model: type[Model]
    secret: Sequence[str] = ()
    signed: Sequence[str] = ()


def audit(table: Audited) -> None:
    """Have the changes kept, from now on."""
    fields = [field.name for field in table.model._meta.concrete_fields if field.editable and not field.primary_key]
    auditlog.register(
        table.model,
        include_fields=[*fields, *table.secret],
        mask_fields=list(table.secret),
        mask_callable=f"{__name__}.hide",
    )


def hide(value: str) -> str:
    """What stands in the place of a secret; ``value`` as text, with None for none."""
    return NOTHING if value in ("", "None") else HIDDEN


def is_audited(model: type[Model]) -> bool:
    return bool(auditlog.contains(model))


def label_of(model: type[Model] | None, name: str) -> str:
    """What a field is called on its form; of one that is gone from the site, its name."""
    try:
        field: Any = model._meta.get_field(name) if model is not None else None
    except FieldDoesNotExist:
        field = None
    return capfirst(str(getattr(field, "verbose_name", name.replace("_", " "))))


def fields_of(model: type[Model]) -> list[Any]:
    """The audited fields of a model that are no secrets."""
    fields = auditlog.get_model_fields(model)
    names = [name for name in fields["include_fields"] if name not in fields["mask_fields"]]
    return [model._meta.get_field(name) for name in names]
