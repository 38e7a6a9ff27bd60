"""The characters allowed in names that people see, wherever they are entered."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

# Control and format characters (which reverse text, or have no width), surrogates, private and unassigned ones, and
# separators of lines and paragraphs
_UNSEEN: Final = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
# Letters, marks and symbols by their category that are invisible
_BLANKS: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")


def on_one_line(text: str) -> str:
    """The name as it is stored: no white space around it, and one space for each run of it."""
    return " ".join(text.split())


def hides_something(name: str) -> bool:
    """Whether it has invisible characters, or ones that reverse or hide the text around them."""
    return any(map(_is_hidden, name))


MAX_LOGIN_NAME_CHARS: Final = 40
# Clients hash a login's bytes in lower case, and only for these letters do all of them make the same lower case.
_LOGIN_NAME: Final = re.compile(r"[A-Za-z](?:[ ._-]?[A-Za-z0-9]){1,39}")
_ALIKE: Final = str.maketrans({"0": "o", "1": "l", "i": "l", " ": None, ".": None, "_": None, "-": None})


def is_login_name(name: str) -> bool:
    """Whether this can be a user name to log in by: ASCII letters and digits, with single separators in between."""
    return len(name) <= MAX_LOGIN_NAME_CHARS and _LOGIN_NAME.fullmatch(name) is not None


def folded(name: str) -> str:
    """The form that look-alike user names share: only one person may have it."""
    return name.strip().lower().translate(_ALIKE)


def cleaned(name: str) -> str:
    """A name that a program reports, without its invisible characters, as nobody is there to correct it."""
    if name.isascii() and name.isprintable():
        return name
    return on_one_line("".join(character for character in name if character.isspace() or not _is_hidden(character)))


def _is_hidden(character: str) -> bool:
    return character in _BLANKS or unicodedata.category(character) in _UNSEEN
