"""Texts that come with the software where operators may write their own, in the reader's language.

They are stored in English. What an operator writes is shown as it is.
"""

from __future__ import annotations

from functools import cache

from django.conf import settings
from django.utils.translation import gettext

from portal.extras import site_apps


@cache
def texts() -> frozenset[str]:
    """The marked texts of all apps; ``%(site)s`` stands for the site's name."""
    return frozenset(text for app in site_apps() for text in app.supplied_texts())


def shown(text: str) -> str:
    """A supplied text in the page's language; any other text as it is."""
    if text in texts():
        return gettext(text)
    marked = text.replace(settings.SITE_NAME, "%(site)s")
    return gettext(marked) % {"site": settings.SITE_NAME} if marked in texts() else text
