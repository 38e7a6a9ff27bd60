"""Opening balances: credit from before the project moved here, which no result of this site stands for.

Totals and recent averages contain them (`UserCredit`, `HostCredit`, `Team.former_credit`). They stay as they were
carried over; ``expavg_at`` is the time at which the average was so.
"""

from __future__ import annotations

from django.db import models
from django.db.models import CheckConstraint, Q
from django.utils.translation import gettext_lazy as _

from credit.models.apps import App
from credit.models.grants import Credit
from credit.models.teams import Team
from portal.models import Host, User


class UserOpening(Credit):
    """What a volunteer had."""

    user = models.OneToOneField(User, models.CASCADE, primary_key=True, related_name="+")

    class Meta(Credit.Meta):
        verbose_name = _("opening balance of a volunteer")
        verbose_name_plural = _("opening balances of volunteers")

    def __str__(self) -> str:
        return f"{self.user}: {self.total_credit:.0f}"


class HostOpening(Credit):
    """What a computer had. If it is merged here, that of the record which stays contains it too."""

    host = models.OneToOneField(Host, models.CASCADE, primary_key=True, related_name="+")

    class Meta(Credit.Meta):
        verbose_name = _("opening balance of a computer")
        verbose_name_plural = _("opening balances of computers")

    def __str__(self) -> str:
        return f"{self.host}: {self.total_credit:.0f}"


class TeamOpening(Credit):
    """What a team had."""

    team = models.OneToOneField(Team, models.CASCADE, primary_key=True, related_name="+")

    class Meta(Credit.Meta):
        verbose_name = _("opening balance of a team")
        verbose_name_plural = _("opening balances of teams")

    def __str__(self) -> str:
        return f"{self.team}: {self.total_credit:.0f}"


class AppOpening(Credit):
    """What a volunteer had of an app's jobs, where the project before kept that; a part of what they had."""

    user = models.ForeignKey(User, models.CASCADE, related_name="+", db_index=False)
    app = models.ForeignKey(App, models.CASCADE, related_name="+")
    njobs = models.BigIntegerField(default=0)

    class Meta(Credit.Meta):
        verbose_name = _("opening balance of an app")
        verbose_name_plural = _("opening balances of apps")
        constraints = [
            *Credit.Meta.constraints,
            models.UniqueConstraint(fields=["user", "app"], name="appopening_once"),
            CheckConstraint(condition=Q(njobs__gte=0), name="appopening_njobs"),
        ]

    def __str__(self) -> str:
        return f"{self.user}, {self.app}: {self.total_credit:.0f}"
