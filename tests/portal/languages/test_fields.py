"""Numbers in forms as the reader's language writes them."""

from __future__ import annotations

import pytest
from django import forms
from django.utils.translation import override

from portal.languages.fields import LocalisedFloatField


@pytest.mark.parametrize(
    ("language", "text", "number"),
    [("de", "22,5", 22.5), ("de", "22.5", 22.5), ("de", "7", 7), ("en", "22.5", 22.5), ("de", "", None)],
)
def test_a_number_is_read_as_the_language_writes_it(language: str, text: str, number: float | None) -> None:
    with override(language):
        assert LocalisedFloatField(required=False).clean(text) == number


@pytest.mark.parametrize(("language", "text"), [("en", "22,5"), ("de", "2,2,5"), ("de", "nan"), ("de", "inf")])
def test_what_is_no_number_there_is_refused(language: str, text: str) -> None:
    with override(language), pytest.raises(forms.ValidationError):
        LocalisedFloatField().clean(text)
