"""Sums of the daily history by month, so that pages of many years need not read its days.

accounting/ledger/months.py writes them, and says when they are exact.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import CheckConstraint, Q

from accounting.models.amounts import Amounts
from portal.models import User


class Month(Amounts):
    """A host's credit at a project in a closed month: the sums of its rows in Day and GrantedDay."""

    pk = models.CompositePrimaryKey("user_id", "month", "project_id", "host_id")
    user = models.ForeignKey(User, models.CASCADE, related_name="+", db_index=False)
    # Its first day
    month = models.DateField()
    # Without constraints, like those of Day
    project = models.ForeignKey(
        "accounting.Project", models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False
    )
    host = models.ForeignKey("portal.Host", models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False)
    # The combined flags of its days
    flags = models.SmallIntegerField(default=0)
    granted = models.BigIntegerField("granted, micro-credits", default=0)

    class Meta:
        constraints = [CheckConstraint(condition=Q(month__day=1), name="month_first_day")]

    def __str__(self) -> str:
        return f"{self.month:%Y-%m}: {self.host_id} at {self.project_id}"


class BestDay(models.Model):
    """A volunteer's day with most credit in a closed month, and the number of its days with any."""

    pk = models.CompositePrimaryKey("user_id", "month")
    user = models.ForeignKey(User, models.CASCADE, related_name="+", db_index=False)
    month = models.DateField()
    day = models.DateField()
    ec = models.BigIntegerField("micro-credits")
    active_days = models.PositiveSmallIntegerField()

    class Meta:
        constraints = [
            CheckConstraint(condition=Q(month__day=1), name="bestday_first_day"),
            CheckConstraint(condition=Q(ec__gt=0, active_days__range=(1, 31)), name="bestday_range"),
        ]

    def __str__(self) -> str:
        return f"{self.day}: {self.ec}"


class ClosedMonths(models.Model):
    """Through which month the history is summed up; one row, or none before the first month is closed."""

    THE_ROW: ClassVar = 1
    id = models.PositiveSmallIntegerField(primary_key=True, default=THE_ROW)
    until = models.DateField("first month that is not closed")

    class Meta:
        constraints = [
            CheckConstraint(condition=Q(id=1), name="closedmonths_one_row"),
            CheckConstraint(condition=Q(until__day=1), name="closedmonths_first_day"),
        ]

    def __str__(self) -> str:
        return f"closed before {self.until:%Y-%m}"
