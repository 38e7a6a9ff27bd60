"""Texts that this software supplies where operators may write their own, in the language of who reads them.

They are stored in English. What an operator writes is shown as it is.
"""

from __future__ import annotations

from functools import cache

from django.utils.translation import gettext

from portal.extras import site_apps


@cache
def texts() -> frozenset[str]:
    """The marked texts of all apps."""
    return frozenset(text for app in site_apps() for text in app.supplied_texts())


def shown(text: str) -> str:
    """A supplied text in the page's language; another text as it is."""
    return gettext(text) if text in texts() else text
