"""Opening balances: credit from before the project moved here, for which this site has no results.

Totals and recent averages include them (`UserCredit`, `HostCredit`, `Team.former_credit`). They never change;
``expavg_at`` is the time that the average refers to.
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
    """A volunteer's credit from before the move."""

    user = models.OneToOneField(User, models.CASCADE, primary_key=True, related_name="+")

    class Meta(Credit.Meta):
        verbose_name = _("opening balance of a volunteer")
        verbose_name_plural = _("opening balances of volunteers")

    def __str__(self) -> str:
        return f"{self.user}: {self.total_credit:.0f}"


class HostOpening(Credit):
    """A computer's credit from before the move. Merging records adds it to the record that stays."""

    host = models.OneToOneField(Host, models.CASCADE, primary_key=True, related_name="+")

    class Meta(Credit.Meta):
        verbose_name = _("opening balance of a computer")
        verbose_name_plural = _("opening balances of computers")

    def __str__(self) -> str:
        return f"{self.host}: {self.total_credit:.0f}"


class TeamOpening(Credit):
    """A team's credit from before the move."""

    team = models.OneToOneField(Team, models.CASCADE, primary_key=True, related_name="+")

    class Meta(Credit.Meta):
        verbose_name = _("opening balance of a team")
        verbose_name_plural = _("opening balances of teams")

    def __str__(self) -> str:
        return f"{self.team}: {self.total_credit:.0f}"


class AppOpening(Credit):
    """A volunteer's credit for an app's jobs, if the previous project kept it; a part of their opening balance."""

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
