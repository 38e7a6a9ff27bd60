"""Fields of forms that take what the reader's language writes."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.formats import sanitize_separators


class LocalisedFloatField(forms.FloatField):
    """A number with the decimal separator of the page's language or a point: "22,5" and "22.5" in German.

    Its input stays one for numbers, which ``localize`` would make one for text.
    """

    def to_python(self, value: Any) -> float | None:  # type: ignore[override]  # the stubs have int of its parent
        return super().to_python(sanitize_separators(value))
