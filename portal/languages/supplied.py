"""Texts that this software supplies where operators may write their own, in the language of who reads them.

They are stored in English. What an operator writes is shown as it is.
"""

from __future__ import annotations

from functools import cache

from django.conf import settings
from django.utils.translation import gettext

from portal.extras import site_apps


@cache
def texts() -> frozenset[str]:
    """The marked texts of all apps; those with the site's name have ``%(site)s`` for it."""
    return frozenset(text for app in site_apps() for text in app.supplied_texts())


def shown(text: str) -> str:
    """A supplied text in the page's language; another text as it is."""
    if text in texts():
        return gettext(text)
    marked = text.replace(settings.SITE_NAME, "%(site)s")
    return gettext(marked) % {"site": settings.SITE_NAME} if marked in texts() else text
