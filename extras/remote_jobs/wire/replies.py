"""Errors in BOINC's form: an element with a number that is not 0. Pure."""

from __future__ import annotations

from typing import Final

from scheduler.web_rpcs.documents import Element

ERROR_NUM: Final = -1
DATABASE_ERROR_NUM: Final = -138


def error(message: str, number: int = ERROR_NUM) -> Element:
    """What a program is told instead of what it asked for; nothing follows the name that a message ends with."""
    return "error", [("error_num", number), ("error_msg", message)]
