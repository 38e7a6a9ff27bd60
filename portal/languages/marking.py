"""Marks texts for translation in modules that know no Django; who shows such a text translates it. Pure."""

from __future__ import annotations


def gettext_noop(text: str) -> str:
    """The text itself: the extraction of texts goes by this function's name."""
    return text
