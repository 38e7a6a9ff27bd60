"""Marks texts for translation in modules that know no Django; the code that shows such a text translates it. Pure."""

from __future__ import annotations


def gettext_noop(text: str) -> str:
    """Return the text itself; the extraction of texts looks for this function's name."""
    return text
