"""Texts that this software supplies where operators may write their own, in the language of who reads them.

They are stored in English. What an operator writes is shown as it is.
"""

from __future__ import annotations

from typing import Final

from portal.languages.stored import translated

texts: Final[list[str]] = []
"""The marked texts. Each app adds its own when it is ready."""


def shown(text: str) -> str:
    """A supplied text in the page's language; another text as it is."""
    return translated(text, texts)
