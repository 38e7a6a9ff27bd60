"""Top lists: volunteers who agreed to be in them, and teams, with credit as it was last counted.

Lists are read from here, by index, and not from the credit itself: an index on it would slow down every grant.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from credit.engine.rules import MAX_STATISTIC
from credit.models import App, Team
from credit.models.common import within
from portal.models import MAX_NAME_CHARS, User


class CountedCredit(models.Model):
    """Total credit, and its recent average (credits a day), as of ``counted_at``."""

    total_credit = models.FloatField(default=0)
    recent_credit = models.FloatField(default=0)
    counted_at = models.DateTimeField(default=timezone.now)

    class Meta:
        abstract = True


class ListedVolunteer(CountedCredit):
    """A volunteer who agreed to be shown in top lists. Without a row: in none."""

    user = models.OneToOneField(User, models.CASCADE, primary_key=True, related_name="listing")
    # Empty: the display name of the account
    shown_name = models.CharField(_("name in the lists"), max_length=MAX_NAME_CHARS, blank=True)
    agreed_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name = _("consent to be shown in top lists")
        verbose_name_plural = _("consents to be shown in top lists")
        indexes = [
            models.Index(
                fields=["-total_credit", "user"], condition=Q(total_credit__gt=0), name="listedvolunteer_total"
            ),
            models.Index(
                fields=["-recent_credit", "user"], condition=Q(total_credit__gt=0), name="listedvolunteer_recent"
            ),
        ]
        constraints = [
            within("listedvolunteer", "total_credit", 0, MAX_STATISTIC),
            within("listedvolunteer", "recent_credit", 0, MAX_STATISTIC),
        ]

    def __str__(self) -> str:
        return str(self.user)


class ListedAppCredit(models.Model):
    """The credit granted to a listed volunteer for an app's tasks, as last counted. It is deleted with their
    consent.
    """

    volunteer = models.ForeignKey(ListedVolunteer, models.CASCADE, related_name="of_apps", db_index=False)
    app = models.ForeignKey(App, models.CASCADE, related_name="+", db_index=False)
    total_credit = models.FloatField()

    class Meta:
        verbose_name = _("credit of a listed volunteer for an app")
        verbose_name_plural = _("credit of listed volunteers for apps")
        indexes = [models.Index(fields=["app", "-total_credit", "volunteer"], name="listedappcredit_total")]
        constraints = [
            models.UniqueConstraint(fields=["volunteer", "app"], name="listedappcredit_once"),
            within("listedappcredit", "total_credit", 0, MAX_STATISTIC),
        ]

    def __str__(self) -> str:
        return f"{self.volunteer_id} · {self.app}"


class ListedTeam(CountedCredit):
    """A team in the top list of teams."""

    team = models.OneToOneField(Team, models.CASCADE, primary_key=True, related_name="listing")
    nmembers = models.PositiveIntegerField(default=0)

    class Meta:
        verbose_name = _("team in the top list")
        verbose_name_plural = _("teams in the top list")
        indexes = [
            models.Index(fields=["-total_credit", "team"], name="listedteam_total"),
            models.Index(fields=["-recent_credit", "team"], name="listedteam_recent"),
        ]
        constraints = [
            within("listedteam", "total_credit", 0, MAX_STATISTIC),
            within("listedteam", "recent_credit", 0, MAX_STATISTIC),
        ]

    def __str__(self) -> str:
        return str(self.team)
