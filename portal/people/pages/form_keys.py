"""A key in a form that makes something, new each time the form is shown, so that a form sent twice makes one thing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from uuid import UUID

FORM_KEY: Final = "form_key"


def read_form_key(sent: Mapping[str, str]) -> UUID | None:
    """The key of a sent form; None for one without, which makes something each time."""
    try:
        return UUID(sent.get(FORM_KEY, ""))
    except ValueError:
        return None
