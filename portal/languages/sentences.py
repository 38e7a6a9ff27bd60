"""Stored messages, and their sentences in the reader's language."""

from __future__ import annotations

from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db import models
from django.utils.functional import Promise
from django.utils.translation import gettext, override

from portal.languages.messages import Message, stored
from portal.languages.numbers import localised


def sentence(message: Message | str | None) -> str:
    """The message in the active language, with localised numbers; a text as it is; "" for None."""
    return message.words(gettext, localised) if isinstance(message, Message) else message or ""


def unpacked(text: str) -> str:
    """The sentence of a packed message; any other text as it is."""
    return sentence(Message.from_packed(text))


def in_english(text: Promise | str) -> str:
    """A marked text in English, for logs and figures, whatever language is active."""
    with override(None):
        return str(text)


class _Shown(DjangoJSONEncoder):
    """Writes a message as its sentence, where the admin shows a column as JSON."""

    def default(self, o: Any) -> Any:
        return sentence(o) if isinstance(o, Message) else super().default(o)


class MessageField(models.JSONField):
    """A column for a message; NULL without one."""

    MAX_NBYTES = 10_000

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"null": True, "blank": True, "editable": False, "encoder": _Shown, **kwargs})

    def deconstruct(self) -> Any:
        name, path, args, kwargs = super().deconstruct()
        del kwargs["encoder"]
        return name, path, args, kwargs

    def db_check(self, connection: Any) -> str:
        return f"octet_length({connection.ops.quote_name(self.column)}::text) <= {self.MAX_NBYTES}"

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        data = super().from_db_value(value, expression, connection)
        return None if data is None else self._messages(data)

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:
        return super().get_db_prep_value(stored(value), connection, prepared)

    def value_to_string(self, obj: models.Model) -> Any:
        return stored(self.value_from_object(obj))

    def to_python(self, value: Any) -> Any:
        return self._messages(value) if isinstance(value, dict | list) else value

    def _messages(self, data: Any) -> Any:
        return Message.from_json(data)


class MessagesField(MessageField):
    """A column for a list of messages."""

    MAX_NBYTES = 100_000

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"null": False, "default": list, **kwargs})

    def _messages(self, data: Any) -> list[Message]:
        return [Message.from_json(item) for item in data] if isinstance(data, list) else []
