"""Django's autodetector of model changes, which ignores texts for people: a changed word needs no migration."""

from __future__ import annotations

from typing import Any, Final

from django.db.migrations.autodetector import MigrationAutodetector
from django.db.migrations.questioner import MigrationQuestioner
from django.db.migrations.state import ModelState, ProjectState
from django.db.models import Field

_MODEL_TEXTS: Final = ("verbose_name", "verbose_name_plural")
_FIELD_TEXTS: Final = ("verbose_name", "help_text", "choices")


class TextlessAutodetector(MigrationAutodetector):
    """Compares and writes models without labels, help texts and choices, none of which a database stores."""

    def __init__(
        self, from_state: ProjectState, to_state: ProjectState, questioner: MigrationQuestioner | None = None
    ) -> None:
        super().__init__(without_texts(from_state), without_texts(to_state), questioner)


def without_texts(state: ProjectState) -> ProjectState:
    """Remove the texts from the state's own fields and options."""
    for model in state.models.values():
        _strip_model(model)
    return state


def _strip_model(model: ModelState) -> None:
    for text in _MODEL_TEXTS:
        model.options.pop(text, None)
    model.fields = {name: _textless(field) for name, field in model.fields.items()}


def _textless(field: Field[Any, Any]) -> Field[Any, Any]:
    """A copy of this field without its texts."""
    _, _, args, kwargs = field.deconstruct()
    arguments = {name: value for name, value in kwargs.items() if name not in _FIELD_TEXTS}
    if isinstance(inner := arguments.get("base_field"), Field):
        arguments["base_field"] = _textless(inner)
    return type(field)(*args, **arguments)
