"""English sentences that were stored, such as why something failed, in the language of who reads them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache

from django.utils.functional import Promise
from django.utils.translation import gettext, override

from portal.languages.numbers import localised_within

_PLACEHOLDER = re.compile(r"%\\\((\w+)\\\)s")


def in_english(text: Promise | str) -> str:
    """A marked text as it is stored, whoever causes it to be written."""
    with override(None):
        return str(text)


def translated(stored: str, templates: Iterable[str]) -> str:
    """``stored`` in the page's language, if it was made of one of these marked texts; else as it is.

    What was put into a placeholder ``%(name)s`` is translated, too, where it is a text that is known: the whole of it,
    or its parts between commas; thousands are written as the page writes them.
    """
    found = made_of(stored, templates)
    if found is None:
        return stored
    template, values = found
    return localised_within(filled(template, {name: _value(value) for name, value in values.items()}))


def made_of(stored: str, templates: Iterable[str]) -> tuple[str, dict[str, str]] | None:
    """The first of these texts that ``stored`` was made of, and what was put into its placeholders; else None."""
    for template in templates:
        if found := _pattern(template).fullmatch(stored):
            return template, found.groupdict()
    return None


def filled(template: str, values: Mapping[str, str]) -> str:
    """The text in the page's language, with these values. Without any, a percent sign in it is only that."""
    return gettext(template) % values if values else gettext(template)


def _value(text: str) -> str:
    if not text:
        return ""
    whole = gettext(text)
    return whole if whole != text else ", ".join(gettext(part) if part else "" for part in text.split(", "))


@cache
def _pattern(template: str) -> re.Pattern[str]:
    return re.compile(_PLACEHOLDER.sub(r"(?P<\1>.+?)", re.escape(template)), re.DOTALL)
