"""Form fields that accept the number format of the reader's language."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.formats import sanitize_separators


class LocalisedFloatField(forms.FloatField):
    """A number with a point or the decimal separator of the page's language: "22,5" and "22.5" in German.

    Its input stays a numeric one; ``localize`` would make it one for text.
    """

    def to_python(self, value: Any) -> float | None:  # type: ignore[override]  # the stubs have int of its parent
        return super().to_python(sanitize_separators(value))
