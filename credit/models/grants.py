"""Sums and recent averages of the credit granted to volunteers and computers."""

from __future__ import annotations

import datetime as dt
from typing import Final

from django.db import models
from django.db.models import CheckConstraint, Q
from django.utils.translation import gettext_lazy as _

from credit.engine.rules import MAX_STATISTIC
from credit.models.common import within
from portal.models import Host, User

# All real times are between these; infinity is not.
_FIRST: Final = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)
_LAST: Final = dt.datetime(9999, 1, 1, tzinfo=dt.UTC)


class Credit(models.Model):
    """Credit granted: in total, and as a recent average (credits a day, half-life seven days)."""

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
    """The credit granted to a volunteer."""

    user = models.OneToOneField(User, models.CASCADE, primary_key=True, related_name="credit")

    class Meta(Credit.Meta):
        verbose_name = _("credit of a volunteer")
        verbose_name_plural = _("credit of volunteers")

    def __str__(self) -> str:
        return f"{self.user}: {self.total_credit:.0f}"


class HostCredit(Credit):
    """The credit granted to a computer, and how far its processors' time was credited for trickle-up messages."""

    host = models.OneToOneField(Host, models.CASCADE, primary_key=True, related_name="credit")
    # NULL: never (engine.partial.MachineTime)
    cpus_credited_until = models.DateTimeField(null=True)
    gpus_credited_until = models.DateTimeField(null=True)

    class Meta(Credit.Meta):
        verbose_name = _("credit of a computer")
        verbose_name_plural = _("credit of computers")
        constraints = [
            *Credit.Meta.constraints,
            *(
                CheckConstraint(
                    condition=Q(**{f"{name}__gte": _FIRST, f"{name}__lt": _LAST}), name=f"hostcredit_{name}_range"
                )
                for name in ("cpus_credited_until", "gpus_credited_until")
            ),
        ]

    def __str__(self) -> str:
        return f"{self.host}: {self.total_credit:.0f}"
