"""Numbers with the separators of the page's language."""

from __future__ import annotations

from django.utils.formats import get_format


def localised(text: str) -> str:
    """Write a number in Python's notation, such as "1,234.5", with the separators of the page's language."""
    separators = {",": get_format("THOUSAND_SEPARATOR"), ".": get_format("DECIMAL_SEPARATOR")}
    return text.translate(str.maketrans(separators))
