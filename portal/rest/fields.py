"""Fields that several apps' API results have."""

from __future__ import annotations

import re
from typing import Any, Final

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

DIGITS: Final = 6
_WHOLE: Final = re.compile(r"-?[0-9]{1,20}")


@extend_schema_field({"type": "string", "format": "decimal", "example": "259.346744"})
class AmountField(serializers.CharField):
    """Credits or seconds as decimal text with six digits after the point."""


class WholeNumberParam(serializers.IntegerField):
    """A parameter that is a whole number in plain digits; Python would also read spaces, points and underscores."""

    def to_internal_value(self, data: Any) -> int:
        if not (isinstance(data, str) and _WHOLE.fullmatch(data)):
            self.fail("invalid")
        return super().to_internal_value(data)


class TruthParam(serializers.BooleanField):
    """A parameter that is true or false, as JSON or Python writes it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.TRUE_VALUES = {"true", "True"}
        self.FALSE_VALUES = {"false", "False"}
        self.NULL_VALUES = set()


def decimal_text(amount: float) -> str:
    """The value of an `AmountField`."""
    return f"{amount:.{DIGITS}f}"
