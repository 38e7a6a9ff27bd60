"""Statements that stand in files of their own, beside the module that sends them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from portal.clients.effects import Statement

_COMMENT: Final = re.compile(r"^\s*--.*\n", re.MULTILINE)
_CONSTANT: Final = re.compile(r"(?<!:):([A-Z]\w*)")


def statement(beside: str, name: str, **constants: int) -> Statement:
    """The statement in ``name``.sql beside this module; ``:NAME``, as in psql, is one of the constants.

    They are literals to PostgreSQL: the conditions of partial indexes need them.
    """
    text = _COMMENT.sub("", Path(beside).with_name(f"{name}.sql").read_text())
    return Statement(_CONSTANT.sub(lambda match: str(int(constants[match[1]])), text))
