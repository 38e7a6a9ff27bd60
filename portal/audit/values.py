"""Values of settings: as a change stores them (JSON), as a row has them, and in words."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any, Final

from django.core.exceptions import FieldDoesNotExist, ValidationError
from django.db.models import DateTimeField, Field, ForeignKey, Model
from django.utils.formats import date_format
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from portal.audit.register import HIDDEN, NOTHING, label_of
from portal.languages.sentences import unpacked
from portal.models import Change
from portal.templatetags.display import localised

MAX_SHOWN: Final = 300
EMPTY: Final = _("(empty)")


@dataclass(frozen=True, slots=True)
class Line:
    """A field of a change in words."""

    name: str
    label: str
    before: str
    after: str


def stored(row: Model, name: str) -> Any:
    """A field's value as a change stores it: as it is if JSON has its type, else as text."""
    field: Any = row._meta.get_field(name)
    value = getattr(row, field.attname)
    if isinstance(value, dt.datetime):
        return str(value.astimezone(dt.UTC).replace(tzinfo=None))
    return value if value is None or isinstance(value, bool | int | float | str | list | dict) else str(value)


def restored(field: Any, value: Any) -> Any:
    """A column's value from its stored form; raises ValidationError for an impossible one."""
    restored_value = field.to_python(value)
    if isinstance(field, DateTimeField) and restored_value is not None and restored_value.tzinfo is None:
        restored_value = restored_value.replace(tzinfo=dt.UTC)
    return restored_value


def in_words(field: Field[Any, Any] | None, value: Any) -> str:
    """A value as a page shows it."""
    if value is None or value == "":
        return str(EMPTY)
    if isinstance(field, ForeignKey):
        related = field.related_model._default_manager.filter(pk=value).first()
        return str(related) if related is not None else gettext("no. %(number)s (deleted)") % {"number": value}
    if field is not None and field.choices:
        return str(dict(field.flatchoices).get(value, value))
    if isinstance(field, DateTimeField):
        return _time_in_words(field, value)
    if isinstance(value, bool):
        return gettext("yes") if value else gettext("no")
    if isinstance(value, float):
        return localised(f"{value:.12g}")
    if value in (HIDDEN, NOTHING):
        return gettext(value)
    text = str(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


def _time_in_words(field: Field[Any, Any], value: Any) -> str:
    try:
        return f"{date_format(restored(field, value), 'DATETIME_FORMAT')} UTC"
    except ValidationError:
        return str(value)


def lines(model: type[Model] | None, changes: dict[str, list[Any]]) -> list[Line]:
    """Describe changes in the order of the model's fields; ``model`` None: the site no longer has it."""
    order = [field.name for field in model._meta.get_fields()] if model is not None else []
    names = sorted(changes, key=lambda name: order.index(name) if name in order else len(order))
    return [_line(model, name, *changes[name][:2]) for name in names]


def lines_of(change: Change) -> list[Line]:
    """Describe a recorded change; fields that stayed empty are left out."""
    value_lines = {
        name: pair
        for name, pair in (change.changes or {}).items()
        if isinstance(pair, list) and len(pair) == 2 and pair[0] != pair[1]
    }
    return lines(change.content_type.model_class(), value_lines)


def row_words_of(change: Change) -> str:
    """The words for the row that was changed."""
    return unpacked(change.object_repr)


def _line(model: type[Model] | None, name: str, before: Any, after: Any) -> Line:
    try:
        field: Any = model._meta.get_field(name) if model is not None else None
    except FieldDoesNotExist:
        field = None
    return Line(name, label_of(model, name), in_words(field, before), in_words(field, after))
