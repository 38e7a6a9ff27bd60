"""Which settings are audited: models and their fields. Whatever saves or deletes a row of them leaves a change."""

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
    """A table of settings: changes of its editable fields are recorded.

    State that the site itself writes is in fields that are not editable, and left out. Bulk writes and ``update()``
    leave no change, so they are for state. ``secret``: fields whose changes are recorded without their values.
    ``signed``: fields whose changes also go into the signed log.
    """

    model: type[Model]
    secret: Sequence[str] = ()
    signed: Sequence[str] = ()


def audit(table: Audited) -> None:
    """Record changes of this table from now on."""
    fields = [field.name for field in table.model._meta.concrete_fields if field.editable and not field.primary_key]
    auditlog.register(
        table.model,
        include_fields=[*fields, *table.secret],
        mask_fields=list(table.secret),
        mask_callable=f"{__name__}.hide",
    )


def hide(value: str) -> str:
    """Return what is shown instead of a secret; ``value`` as text, "None" for none."""
    return NOTHING if value in ("", "None") else HIDDEN


def is_audited(model: type[Model]) -> bool:
    return bool(auditlog.contains(model))


def label_of(model: type[Model] | None, name: str) -> str:
    """A field's label on its form; its name if the site no longer has the field."""
    try:
        field: Any = model._meta.get_field(name) if model is not None else None
    except FieldDoesNotExist:
        field = None
    return capfirst(str(getattr(field, "verbose_name", name.replace("_", " "))))


def fields_of(model: type[Model]) -> list[Any]:
    """The audited fields of a model, without secrets."""
    fields = auditlog.get_model_fields(model)
    names = [name for name in fields["include_fields"] if name not in fields["mask_fields"]]
    return [model._meta.get_field(name) for name in names]
