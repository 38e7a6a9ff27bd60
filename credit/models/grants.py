"""Granted credit: sums and recent averages of volunteers and of computers."""

from __future__ import annotations

from django.db import models
from django.db.models import CheckConstraint, Q

from credit.models.common import MAX_STATISTIC, within
from portal.models import Host, User


class Credit(models.Model):
    """Credit granted, in sum and lately (half-life seven days, in credits a day)."""

    total_credit = models.FloatField(default=0)
    expavg_credit = models.FloatField(default=0)
    expavg_at = models.DateTimeField(null=True)

    class Meta:
        abstract = True
        constraints = [
            CheckConstraint(
                condition=Q(total_credit__gte=0, total_credit__lt=MAX_STATISTIC), name="%(class)s_total_range"
            ),
            within("%(class)s", "expavg_credit", 0, MAX_STATISTIC),
        ]


class UserCredit(Credit):
    """What was granted to a volunteer."""

    user = models.OneToOneField(User, models.CASCADE, primary_key=True, related_name="credit")

    def __str__(self) -> str:
        return f"{self.user}: {self.total_credit:.0f}"


class HostCredit(Credit):
    """What was granted to a computer."""

    host = models.OneToOneField(Host, models.CASCADE, primary_key=True, related_name="credit")

    def __str__(self) -> str:
        return f"{self.host}: {self.total_credit:.0f}"
