"""Errors in BOINC's form: an element with a non-zero number. Pure."""

from __future__ import annotations

from typing import Final

from scheduler.web_rpcs.documents import Element

ERROR_NUM: Final = -1
DATABASE_ERROR_NUM: Final = -138


def error(message: str, number: int = ERROR_NUM) -> tuple[str, list[Element]]:
    """Return the error that a program gets instead of its answer; nothing follows the name that a message ends with."""
    return "error", [("error_num", number), ("error_msg", message)]
