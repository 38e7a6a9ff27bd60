"""What volunteers chose: their projects and their settings."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import CheckConstraint, Q
from django.utils.translation import gettext_lazy as _

from accounting.engine.choice.facts import MAX_SHARE
from accounting.models.projects import Project
from portal.models import User


class UserProject(models.Model):
    """A volunteer's choice of a project, their account at it, and their totals there (rolled up by a task)."""

    user = models.ForeignKey(
        User, models.CASCADE, related_name="user_projects", db_index=False, verbose_name=_("volunteer")
    )
    project = models.ForeignKey(Project, models.CASCADE, related_name="user_projects", verbose_name=_("project"))
    is_chosen = models.BooleanField(_("chosen by hand"), default=False)
    resource_share = models.FloatField(_("resource share"), null=True, blank=True)
    account_key = models.BinaryField(_("account key, encrypted"), null=True, blank=True, editable=False)
    total_ec = models.BigIntegerField(_("estimated credit, micro-credits"), default=0, editable=False)
    avg_ec = models.FloatField(_("recent average, credits per day"), default=0, editable=False)
    avg_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        verbose_name = _("account at a project")
        verbose_name_plural = _("accounts at projects")
        constraints = [
            models.UniqueConstraint(fields=["user", "project"], name="userproject_once"),
            CheckConstraint(
                condition=Q(resource_share__isnull=True) | Q(resource_share__gte=0, resource_share__lte=MAX_SHARE),
                name="userproject_share_range",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user} · {self.project}"


class AccountSettings(models.Model):
    """What a volunteer's clients are told besides projects: preferences and keywords."""

    user = models.OneToOneField(
        User, models.CASCADE, primary_key=True, related_name="account_settings", verbose_name=_("volunteer")
    )
    # {element: number, …, "days": {"0": {"start_hour": number, …}, …}, "venues": {"home": {the same}, …}}, the sets
    # complete (accounting/engine/preferences.py); empty: the client keeps its own.
    preferences = models.JSONField(_("preferences"), default=dict, blank=True)
    preferences_at = models.DateTimeField(_("preferences saved on"), null=True, blank=True)
    keywords_yes = ArrayField(
        models.PositiveIntegerField(), default=list, blank=True, verbose_name=_("preferred keywords")
    )
    keywords_no = ArrayField(
        models.PositiveIntegerField(), default=list, blank=True, verbose_name=_("excluded keywords")
    )
    # What BOINC shows: the name of a team, and the notices of projects.
    team_name = models.CharField(max_length=100, blank=True)
    no_project_notices = models.BooleanField(default=False)
    # Whether clients are asked for their tasks, as far as the site asks (AM_TASKS)
    sends_tasks = models.BooleanField(default=True, db_default=True)

    class Meta:
        verbose_name = _("account settings")
        verbose_name_plural = _("account settings")

    def __str__(self) -> str:
        return str(self.user)
