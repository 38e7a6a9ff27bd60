"""Whether the operators have written about themselves: a page that says they have not is not worth a link.

Every page asks, so the answer is cached, and costs no statement. It is stored when the page is read and every ten
minutes; until then the link is shown.
"""

from __future__ import annotations

from typing import Final

from django.core.cache import cache

from portal.models import SiteText

_KEY: Final = "portal:has_about"


def has_about() -> bool:
    return bool(cache.get(_KEY, True))


def note_about() -> None:
    """Look up and cache whether there is a text. One statement."""
    is_written = SiteText.objects.filter(page=SiteText.Page.ABOUT).exclude(text="").exists()
    cache.set(_KEY, is_written, timeout=None)
