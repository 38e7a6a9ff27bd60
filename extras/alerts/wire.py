"""An alert, where a channel leads, and what is posted there, whatever the kind of the channel. Pure."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Final

MAX_LINES: Final = 10
MAX_LINE_CHARS: Final = 300
MAX_TITLE_CHARS: Final = 120
MAX_URL_CHARS: Final = 1000
URGENT: Final = "security"
"""The kind that is urgent where there is such a thing."""


class DestinationError(ValueError):
    """What a person or a browser gave is no destination; the text names the field and its limit."""


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a channel leads, all of it secret. ``url``: for Web Push, the address that the browser gave.

    ``key``: of a webhook, what signs its messages. ``token``: the access token for ntfy. ``p256dh``,
    ``auth``: the keys of a browser.
    """

    url: str
    key: str = ""
    token: str = ""
    p256dh: str = ""
    auth: str = ""

    @property
    def is_browser(self) -> bool:
        return bool(self.p256dh)


@dataclass(frozen=True, slots=True)
class Alert:
    """A message. ``id``: the same at each try. ``kind``: of `rules`, or "test". ``url``: the page about it."""

    id: str
    kind: str
    is_over: bool
    title: str
    lines: tuple[str, ...]
    url: str
    created_at: dt.datetime

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


@dataclass(frozen=True, slots=True)
class Request:
    """What is posted."""

    url: str
    headers: dict[str, str]
    body: bytes


def clean(text: str, max_chars: int) -> str:
    """One line of printable characters: a name that somebody chose must not begin a line or a header of its own."""
    line = " ".join("".join(character if character.isprintable() else " " for character in text).split())
    return line if len(line) <= max_chars else f"{line[: max_chars - 1]}…"
