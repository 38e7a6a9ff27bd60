"""Texts that this software supplies where operators may write their own, in the language of who reads them.

They are stored in English. What an operator writes is shown as it is.
"""

from __future__ import annotations

from functools import cache

from portal.extras import site_apps
from portal.languages.stored import translated


@cache
def texts() -> tuple[str, ...]:
    """The marked texts of all apps."""
    return tuple(text for app in site_apps() for text in app.supplied_texts())


def shown(text: str) -> str:
    """A supplied text in the page's language; another text as it is."""
    return translated(text, texts())
