"""Sums over all volunteers: the days of each project, and days of erased accounts."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from accounting.models.amounts import Amounts
from accounting.models.projects import Project


class ProjectDay(Amounts):
    """A project's sums over all hosts on one UTC day, rolled up from the days by a task."""

    project = models.ForeignKey(
        Project, models.CASCADE, related_name="project_days", db_index=False, verbose_name=_("project")
    )
    day = models.DateField(_("day"))
    hosts = models.PositiveIntegerField(_("computers"), default=0)
    users = models.PositiveIntegerField(_("volunteers"), default=0)
    rolled_up_at = models.DateTimeField(_("added up on"))

    class Meta:
        verbose_name = _("daily project total")
        verbose_name_plural = _("daily project totals")
        constraints = [models.UniqueConstraint(fields=["project", "day"], name="projectday_once")]

    def __str__(self) -> str:
        return f"{self.project} · {self.day}"


class ErasedDay(Amounts):
    """Work at a project on one UTC day that no account has, so that the sums of projects keep it.

    It comes from erased accounts, and from the records of an account manager that moved here.
    """

    project = models.ForeignKey(Project, models.CASCADE, related_name="+", db_index=False)
    day = models.DateField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "day"], name="erasedday_once")]

    def __str__(self) -> str:
        return f"erased at {self.project} on {self.day}"
