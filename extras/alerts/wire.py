"""An alert, a channel's destination, and the request posted there, whatever the kind of the channel. Pure."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Final

MAX_LINES: Final = 10
MAX_LINE_CHARS: Final = 300
MAX_TITLE_CHARS: Final = 120
MAX_URL_CHARS: Final = 1000
URGENT: Final = "security"
"""The kind that is urgent where the channel knows urgency."""


class DestinationError(ValueError):
    """The input of a person or a browser is no destination; the text names the field and its limit."""


@dataclass(frozen=True, slots=True)
class Destination:
    """A channel's destination, all of it secret. ``url``: for Web Push, the address that the browser gave.

    ``key``: of a webhook, signs its messages. ``token``: the access token for ntfy. ``p256dh``, ``auth``: the keys of a
    browser.
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
    """A message. ``id``: the same for each attempt. ``kind``: of `rules`, or "test". ``url``: the page about it."""

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
    """A request to post."""

    url: str
    headers: dict[str, str]
    body: bytes


def clean(text: str, max_chars: int) -> str:
    """Return one line of printable characters: a name that somebody chose must not begin a line or a header of its
    own.
    """
    line = " ".join("".join(character if character.isprintable() else " " for character in text).split())
    return line if len(line) <= max_chars else f"{line[: max_chars - 1]}…"
