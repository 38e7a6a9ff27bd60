"""Granted credit: sums and recent averages of volunteers and of computers."""

from __future__ import annotations

from django.db import models
from django.db.models import CheckConstraint, Q

from credit.models.common import MAX_STATISTIC, within
from portal.models import Host, User


class UserCredit(models.Model):
    """Credit granted to a volunteer, in sum and lately (half-life seven days, in credits a day)."""

    user = models.OneToOneField(User, models.CASCADE, primary_key=True, related_name="credit")
    total_credit = models.FloatField(default=0)
    expavg_credit = models.FloatField(default=0)
    expavg_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            CheckConstraint(
                condition=Q(total_credit__gte=0, total_credit__lt=MAX_STATISTIC), name="usercredit_total_range"
            ),
            within("usercredit", "expavg_credit", 0, MAX_STATISTIC),
        ]

    def __str__(self) -> str:
        return f"{self.user}: {self.total_credit:.0f}"


class HostCredit(models.Model):
    """The same for a computer."""

    host = models.OneToOneField(Host, models.CASCADE, primary_key=True, related_name="credit")
    total_credit = models.FloatField(default=0)
    expavg_credit = models.FloatField(default=0)
    expavg_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            CheckConstraint(
                condition=Q(total_credit__gte=0, total_credit__lt=MAX_STATISTIC), name="hostcredit_total_range"
            ),
            within("hostcredit", "expavg_credit", 0, MAX_STATISTIC),
        ]

    def __str__(self) -> str:
        return f"{self.host}: {self.total_credit:.0f}"
