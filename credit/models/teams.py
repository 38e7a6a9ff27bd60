"""Teams of volunteers. A team's credit is the sum of what its members were granted while they were in it."""

from __future__ import annotations

from typing import Final

from django.db import models
from django.db.models import CheckConstraint, Q
from django.db.models.functions import Lower
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from credit.engine.rules import MAX_STATISTIC
from credit.models.common import within
from portal.models import User

MAX_TEAM_NAME_CHARS: Final = 80
NAME_TAKEN: Final = _("A team with this name already exists. Choose another name, or join that team.")


class TeamType(models.IntegerChoices):
    """Kinds of teams, by BOINC's numbers."""

    NONE = 0, _("none")
    UNKNOWN = 1, _("other")
    COMPANY = 2, _("company")
    PRIMARY = 3, _("primary school")
    SECONDARY = 4, _("secondary school")
    JUNIOR_COLLEGE = 5, _("junior college")
    UNIVERSITY = 6, _("university or department")
    GOVERNMENT = 7, _("government agency")
    NON_PROFIT = 8, _("non-profit organisation")
    NATIONAL = 9, _("national")
    LOCAL = 10, _("local or regional")
    COMPUTER_TYPE = 11, _("type of computer")
    SOCIAL = 12, _("social, political or religious")


class Team(models.Model):
    """A team. ``former_credit``: granted to members who have left, while they were in it."""

    name = models.CharField(_("name"), max_length=MAX_TEAM_NAME_CHARS)
    type = models.PositiveSmallIntegerField(_("type"), choices=TeamType, default=TeamType.UNKNOWN)
    url = models.URLField(_("web address"), blank=True, max_length=200)
    description = models.TextField(_("description"), blank=True, max_length=2000)
    country = models.CharField(_("country"), blank=True, max_length=60)
    # NULL: nobody; the next member to join becomes the founder
    founder = models.ForeignKey(
        User, models.SET_NULL, null=True, related_name="founded_teams", verbose_name=_("founder")
    )
    created_at = models.DateTimeField(_("created"), default=timezone.now, editable=False)
    former_credit = models.FloatField(_("former credit"), default=0, editable=False)

    class Meta:
        verbose_name = _("team")
        verbose_name_plural = _("teams")
        constraints = [
            models.UniqueConstraint(Lower("name"), name="team_name_once", violation_error_message=NAME_TAKEN),
            CheckConstraint(condition=~Q(name=""), name="team_has_name"),
            within("team", "former_credit", 0, MAX_STATISTIC),
            CheckConstraint(condition=Q(type__in=TeamType.values), name="team_type_known"),
        ]

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """A volunteer's team (at most one). Credit granted before they joined does not count for it."""

    user = models.OneToOneField(User, models.CASCADE, primary_key=True, related_name="membership")
    team = models.ForeignKey(Team, models.CASCADE, related_name="memberships")
    joined_at = models.DateTimeField(default=timezone.now)
    credit_before = models.FloatField(_("credit when joining"), default=0)

    class Meta:
        verbose_name = _("membership")
        verbose_name_plural = _("memberships")
        constraints = [within("membership", "credit_before", 0, MAX_STATISTIC)]

    def __str__(self) -> str:
        return f"{self.user} in {self.team}"
