"""A form field for names that people see."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext

from portal.wire.names import hides_something, on_one_line


class NameField(forms.CharField):
    """A name on one line; it may not have invisible characters (portal.wire.names)."""

    def to_python(self, value: Any) -> str:
        return on_one_line(str(super().to_python(value)))

    def validate(self, value: str) -> None:
        super().validate(value)
        if hides_something(value):
            raise ValidationError(gettext("The name has an invisible character in it. Remove it and try again."))

    def widget_attrs(self, widget: forms.Widget) -> dict[str, Any]:
        # The text's own direction, whatever the page's is
        return {"dir": "auto", **super().widget_attrs(widget)}
