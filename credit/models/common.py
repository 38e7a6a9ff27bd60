"""Shared by the tables of credit: validators of names, the limit of sums and averages, kinds of constraints."""

from __future__ import annotations

from enum import StrEnum

from django.core.validators import RegexValidator
from django.db.models import CheckConstraint, Q, TextChoices
from django.utils.translation import gettext_lazy as _

SAFE_NAME = RegexValidator(r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", "Letters, digits, _ . and - only, not first.")
# Set afterwards: migrations store what a validator was made with, and its message is not part of the tables.
JOB_NAME = RegexValidator(r"^[A-Za-z0-9_.#@][A-Za-z0-9_.#@-]*$", "Letters, digits, _ . # @ and - only, - not first.")
"""Valid names of jobs, and of files named by submitters: those that programs made for BOINC's server use."""
SAFE_NAME.message = _("Use only letters (A to Z, a to z), digits, _ . and -, and begin with a letter or digit.")
JOB_NAME.message = _("Use only letters (A to Z, a to z), digits, _ . # @ and -, and do not begin with -.")


def within(table: str, column: str, low: float, high: float) -> CheckConstraint:
    """Constrain the column to the range from ``low`` to ``high``, or NULL if it may be.

    This also excludes NaN, which PostgreSQL takes for greater than all numbers.
    """
    return CheckConstraint(
        condition=Q(**{f"{column}__gte": low, f"{column}__lte": high}), name=f"{table}_{column}_range"
    )


def one_of(table: str, column: str, choices: type[StrEnum] | type[TextChoices]) -> CheckConstraint:
    """Constrain the column to the enum's values."""
    return CheckConstraint(condition=Q(**{f"{column}__in": list(choices)}), name=f"{table}_{column}_known")


def has_samples(table: str, *averages: str) -> CheckConstraint:
    """Require each of the averages to exist exactly if it has samples."""
    condition = Q()
    for name in averages:
        none = Q(**{f"{name}_n": 0, f"{name}_avg__isnull": True})
        condition &= none | Q(**{f"{name}_n__gt": 0, f"{name}_avg__isnull": False})
    return CheckConstraint(condition=condition, name=f"{table}_averages_have_samples")
