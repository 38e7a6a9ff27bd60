"""SQL statements in files of their own, beside the module that sends them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from portal.clients.effects import Statement

_INCLUDED: Final = re.compile(r"^\\ir (\w+\.sql)\n", re.MULTILINE)
_COMMENT: Final = re.compile(r"^\s*--.*\n", re.MULTILINE)
_PART: Final = re.compile(
    r"^\\if :(?P<name>[A-Z]\w*)\n(?P<then>.*?)(^\\else\n(?P<otherwise>.*?))?^\\endif\n", re.MULTILINE | re.DOTALL
)
_NAMES: Final = re.compile(r'(?<!:):"([A-Z]\w*)"')
_CONSTANT: Final = re.compile(r"(?<!:):([A-Z]\w*)")


def statement(beside: str, name: str, **constants: int | Sequence[str]) -> Statement:
    """The statement in ``name``.sql beside this module (`read_sql`)."""
    return Statement(read_sql(beside, name, **constants))


def read_sql(beside: str, name: str, **constants: int | Sequence[str]) -> str:
    """The text of ``name``.sql beside this module.

    As in psql, ``:NAME`` is one of the constants, ``:"NAME"`` the names of tables or columns, ``\\ir`` includes a file
    beside this one, and what is between ``\\if :NAME`` and ``\\endif`` is there only if that constant is true.

    Constants are literals to PostgreSQL: the conditions of partial indexes need them.
    """
    text = _read(beside, f"{name}.sql")
    text = _COMMENT.sub("", _INCLUDED.sub(lambda included: _read(beside, included[1]), text))
    text = _PART.sub(lambda part: (part["then"] if constants[part["name"]] else part["otherwise"]) or "", text)
    text = _NAMES.sub(lambda names: _quoted(constants, names[1]), text)
    return _CONSTANT.sub(lambda constant: _literal(constants, constant[1]), text)


def _read(beside: str, file: str) -> str:
    return Path(beside).with_name(file).read_text()


def _quoted(constants: Mapping[str, int | Sequence[str]], name: str) -> str:
    names = constants[name]
    assert not isinstance(names, int | str)
    return ", ".join(f'"{identifier}"' for identifier in names)


def _literal(constants: Mapping[str, int | Sequence[str]], name: str) -> str:
    number = constants[name]
    assert isinstance(number, int)
    return str(int(number))
