"""What several of validated credit's tables share: names that are safe everywhere, and the most credit there may be."""

from __future__ import annotations

from typing import Final

from django.core.validators import RegexValidator

MAX_CREDIT: Final = 1e15
"""The most credit (Cobblestones) that one job can be granted."""

SAFE_NAME = RegexValidator(r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", "Letters, digits, _ . and - only, not first.")
