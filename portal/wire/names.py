"""What a name that people see may be made of, by whichever door it comes."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

# Controls, formats (what turns text round, and zero-width characters), surrogates, private and unassigned ones, and
# separators of lines and paragraphs
_UNSEEN: Final = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
# Letters, marks and symbols by their category, of which nothing is seen
_BLANKS: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")


def on_one_line(text: str) -> str:
    """The name as it is stored: no white space around it, and one space for each run of it."""
    return " ".join(text.split())


def hides_something(name: str) -> bool:
    """Whether it has characters that are not seen, or that turn round or hide what stands beside them."""
    return any(map(_is_hidden, name))


MAX_LOGIN_NAME_CHARS: Final = 40
# Clients hash a login's bytes in lower case, and only of these letters all of them make the same lower case.
_LOGIN_NAME: Final = re.compile(r"[A-Za-z](?:[ ._-]?[A-Za-z0-9]){1,39}")
_ALIKE: Final = str.maketrans({"0": "o", "1": "l", "i": "l", " ": None, ".": None, "_": None, "-": None})


def is_login_name(name: str) -> bool:
    """Whether somebody may log in by this name: letters and digits of ASCII, with single separators in between."""
    return len(name) <= MAX_LOGIN_NAME_CHARS and _LOGIN_NAME.fullmatch(name) is not None


def folded(name: str) -> str:
    """What is the same of login names that look alike: they may be one person's only."""
    return name.strip().lower().translate(_ALIKE)


def cleaned(name: str) -> str:
    """A name that a program reports: nobody is there to correct it, so what is not seen is left out."""
    if name.isascii() and name.isprintable():
        return name
    return on_one_line("".join(character for character in name if character.isspace() or not _is_hidden(character)))


def _is_hidden(character: str) -> bool:
    return character in _BLANKS or unicodedata.category(character) in _UNSEEN
