"""Numbers with the separators of the page's language."""

from __future__ import annotations

import re
from typing import Final

from django.utils.formats import get_format

_THOUSANDS: Final = re.compile(r"(?<![\w.,])\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\w,])")


def localised(text: str) -> str:
    """A number in Python's notation, as "1,234.5", with the separators of the page's language."""
    separators = {",": get_format("THOUSAND_SEPARATOR"), ".": get_format("DECIMAL_SEPARATOR")}
    return text.translate(str.maketrans(separators))


def localised_within(text: str) -> str:
    """A sentence that was stored in English, with its thousands as the page writes them."""
    return _THOUSANDS.sub(lambda found: localised(found[0]), text)
