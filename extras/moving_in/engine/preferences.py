"""General preferences as BOINC's server kept them."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

MAX_CHARS: Final = 1 << 16
_WHOLE: Final = re.compile(r"\s*<global_preferences>(.*)</global_preferences>\s*", re.S)
_TIME: Final = re.compile(r"<mod_time>\s*(\d{1,12}(?:\.\d{0,9})?)\s*</mod_time>")
_TAG: Final = re.compile(r"<(/?)([a-z_][a-z_0-9]*)(?:\s[^<>]*?)?(/?)>")


class Preferences(NamedTuple):
    """The elements, and when they were saved in Unix seconds."""

    text: str
    mod_time: float


def read(text: str, now: float) -> Preferences | None:
    """The preferences, if clients can read them: all that was opened is closed, in order, and it has a time."""
    found = _WHOLE.fullmatch(text)
    if found is None or len(text) > MAX_CHARS or not _is_balanced(found[1]):
        return None
    time = _TIME.search(found[1])
    if time is None or not 0 < float(time[1]) < now + 86_400:
        return None
    return Preferences(found[1].strip(), float(time[1]))


def _is_balanced(text: str) -> bool:
    opened: list[str] = []
    for closing, name, empty in _TAG.findall(text):
        if closing:
            if not opened or opened.pop() != name:
                return False
        elif not empty:
            opened.append(name)
    return not opened and "<" not in _TAG.sub("", text)
