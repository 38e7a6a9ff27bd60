"""Sentences as data: what is stored and shown later is a code with arguments, worded for each reader. Pure.

Each app's ``messages.py`` declares its sentences by code, as marked English texts with named placeholders. Code that
stores or raises one gives the code and the arguments: names, addresses, other messages, and numbers in the unit that
the argument's name says, but nothing formatted. The number of a record or a line is given as text, so that
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

MAX_TEXT_CHARS: Final = 1000
"""Limit of a text among the arguments; the rest is cut off."""
MAX_ITEMS: Final = 50
"""Limit of a list among the arguments."""
MAX_NBYTES: Final = 8000
"""Limit of a message as JSON; a longer one loses its arguments."""
VERBATIM: Final = "verbatim"
"""The code for a text that a stranger or another program wrote: it is shown as it is."""

_FRAME: Final = re.compile(r"(?:%\(\w+\)s|\W)+")
_SENTENCES: Final[dict[str, str]] = {VERBATIM: "%(text)s", "at_place": "%(place)s: %(reason)s"}


def declare(sentences: Mapping[str, str]) -> Mapping[str, str]:
    """Register the sentences of an app. A code has one sentence in the whole site."""
    for code, sentence in sentences.items():
        if _SENTENCES.setdefault(code, sentence) != sentence:
            raise ValueError(f"{code} has two sentences")
    return sentences


def declared() -> Mapping[str, str]:
    """All sentences, by code."""
    return _SENTENCES


class Message:
    """A code and its arguments, safe for JSON. ``str`` is its sentence in English, for logs, commands and exports."""

    __slots__ = ("args", "code")

    def __init__(self, code: str, /, **args: Any) -> None:
        self.code = code
        self.args: dict[str, Any] = {name: _argument(value) for name, value in args.items()}

    @classmethod
    def from_json(cls, data: Any) -> Message:
        """Read a stored message. Anything else is shown as it is."""
        if not isinstance(data, dict) or not isinstance(data.get("code"), str):
            return cls(VERBATIM, text=str(data))
        args = data.get("args")
        return cls(data["code"], **(args if isinstance(args, dict) else {}))

    def to_json(self) -> dict[str, Any]:
        data = {"code": self.code, "args": {name: stored(value) for name, value in self.args.items()}}
        is_small = len(json.dumps(data, ensure_ascii=False).encode()) <= MAX_NBYTES
        return data if is_small else {"code": self.code, "args": {}}

    def packed(self) -> str:
        """Pack the message into text, for columns such as those of the admin's log."""
        return json.dumps(self.to_json(), ensure_ascii=False)

    @classmethod
    def from_packed(cls, text: str) -> Message:
        """Read a packed message; any other text is shown as it is."""
        try:
            return cls.from_json(json.loads(text) if text.startswith('{"code"') else text)
        except ValueError:
            return cls(VERBATIM, text=text)

    def words(self, translate: Callable[[str], str], number: Callable[[str], str]) -> str:
        """The sentence translated by ``translate``, with numbers written by ``number``.

        A code without a sentence, or whose sentence has other placeholders by now, is shown itself.
        """
        sentence = _SENTENCES.get(self.code)
        if sentence is None:
            return self.code
        # Frames such as "%(place)s: %(reason)s" are the same in every language.
        text = sentence if _FRAME.fullmatch(sentence) else translate(sentence)
        if "%(" not in text:
            return text
        try:
            return text % {name: _shown(value, translate, number) for name, value in self.args.items()}
        except (KeyError, TypeError, ValueError):
            return self.code

    def __str__(self) -> str:
        return self.words(str, str)

    def __repr__(self) -> str:
        return f"Message({self.code!r}, {self.args!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Message) and (self.code, self.args) == (other.code, other.args)

    def __hash__(self) -> int:
        return hash((self.code, repr(self.args)))


class MessageError(Exception):
    """An error whose sentence is a message; a plain text is shown as it is. ``str`` is the sentence in English."""

    def __init__(self, why: Message | str) -> None:
        self.message = why if isinstance(why, Message) else Message(VERBATIM, text=why)
        super().__init__(self.message)

    def __str__(self) -> str:
        return str(self.message)


def at_place(place: str | Message, reason: Message) -> Message:
    """Put the host, file or field that a reason is about before it; without one, return the reason alone."""
    return Message("at_place", place=place, reason=reason) if place else reason


def _argument(value: Any) -> Any:
    """Convert a value to what a message stores: text that a database takes, a number, a message, or a list of those."""
    if isinstance(value, bool | int | Message) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, dict) and "code" in value:
        return Message.from_json(value)
    if isinstance(value, list | tuple):
        return [_argument(item) for item in value[:MAX_ITEMS]]
    text = str(value).replace("\0", "\N{REPLACEMENT CHARACTER}")[:MAX_TEXT_CHARS]
    return text.encode("utf-8", "replace").decode()


def stored(value: Any) -> Any:
    """Convert a message, or a list of messages, to JSON; any other value is returned as it is."""
    if isinstance(value, list | tuple):
        return [stored(item) for item in value]
    return value.to_json() if isinstance(value, Message) else value


def _shown(value: Any, translate: Callable[[str], str], number: Callable[[str], str]) -> str:
    if isinstance(value, Message):
        return value.words(translate, number)
    if isinstance(value, list):
        return ", ".join(_shown(item, translate, number) for item in value)
    if isinstance(value, float):
        return number(f"{value:,.6g}")
    return number(f"{value:,}") if isinstance(value, int) else str(value)
