"""What several tables of validated credit share: safe names, the limit of sums and averages, kinds of constraints."""

from __future__ import annotations

from enum import StrEnum

from django.core.validators import RegexValidator
from django.db.models import CheckConstraint, Q, TextChoices
from django.utils.translation import gettext_lazy as _

SAFE_NAME = RegexValidator(r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", "Letters, digits, _ . and - only, not first.")
# Set afterwards: migrations keep what a validator was made with, and its words are no part of the tables.
JOB_NAME = RegexValidator(r"^[A-Za-z0-9_.#@][A-Za-z0-9_.#@-]*$", "Letters, digits, _ . # @ and - only, - not first.")
"""Of a job, and of a file that its submitter named: what programs made for BOINC's server call theirs."""
SAFE_NAME.message = _("Use only letters (A to Z, a to z), digits, _ . and -, and begin with a letter or digit.")
JOB_NAME.message = _("Use only letters (A to Z, a to z), digits, _ . # @ and -, and do not begin with -.")


def within(table: str, column: str, low: float, high: float) -> CheckConstraint:
    """The column is from ``low`` to ``high``, or NULL where it may be.

    So it is no NaN, which PostgreSQL takes for greater than all numbers.
    """
    return CheckConstraint(
        condition=Q(**{f"{column}__gte": low, f"{column}__lte": high}), name=f"{table}_{column}_range"
    )


def one_of(table: str, column: str, choices: type[StrEnum] | type[TextChoices]) -> CheckConstraint:
    """The column is one of the enum's values."""
    return CheckConstraint(condition=Q(**{f"{column}__in": list(choices)}), name=f"{table}_{column}_known")


def has_samples(table: str, *averages: str) -> CheckConstraint:
    """Each of the averages is there exactly if it has samples."""
    condition = Q()
    for name in averages:
        none = Q(**{f"{name}_n": 0, f"{name}_avg__isnull": True})
        condition &= none | Q(**{f"{name}_n__gt": 0, f"{name}_avg__isnull": False})
    return CheckConstraint(condition=condition, name=f"{table}_averages_have_samples")
