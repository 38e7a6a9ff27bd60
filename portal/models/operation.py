"""Operation of the site: runs of checks, and figures and tables as they were taken."""

from __future__ import annotations

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from portal.models.people import User


class MaintenanceRun(models.Model):
    """A run of a check, or of other upkeep, that an operator started in the browser (portal/maintenance)."""

    job = models.CharField(_("job"), max_length=40)
    asked_by = models.ForeignKey(
        User, models.SET_NULL, null=True, blank=True, related_name="+", db_index=False, verbose_name=_("asked by")
    )
    asked_at = models.DateTimeField(_("asked at"), default=timezone.now)
    started_at = models.DateTimeField(_("started at"), null=True, blank=True)
    finished_at = models.DateTimeField(_("finished at"), null=True, blank=True)
    # Its findings, a sentence each: the first ones, and how many there were.
    lines = models.JSONField(_("lines"), default=list)
    nlines = models.PositiveIntegerField(_("lines"), default=0)
    failure = models.TextField(_("failure"), blank=True)

    class Meta:
        verbose_name = _("maintenance run")
        verbose_name_plural = _("maintenance runs")
        default_permissions = ("view", "add")
        constraints = [
            models.UniqueConstraint(
                fields=["job"], condition=models.Q(finished_at=None), name="maintenancerun_one_at_a_time"
            )
        ]

    def __str__(self) -> str:
        return f"{self.job} · {self.asked_at:%Y-%m-%d %H:%M}"


class OperatingFigure(models.Model):
    """A figure of how the site runs at a time (portal/dashboard); ``label`` distinguishes series of one name.

    Taken every ten minutes, and thinned out as it gets older (portal/dashboard/thinning.py).
    """

    name = models.CharField(_("name"), max_length=60)
    label = models.CharField(_("label"), max_length=120, blank=True)
    taken_at = models.DateTimeField(_("taken at"))
    value = models.FloatField(_("value"))

    class Meta:
        verbose_name = _("operating figure")
        verbose_name_plural = _("operating figures")
        constraints = [models.UniqueConstraint(fields=["name", "label", "taken_at"], name="operatingfigure_once")]
        indexes = [models.Index(fields=["taken_at"], name="operatingfigure_taken_at")]

    def __str__(self) -> str:
        return f"{self.name} · {self.taken_at:%Y-%m-%d %H:%M}"


class OperatingTable(models.Model):
    """A short table for operators or for the public status, as last taken (portal/dashboard)."""

    name = models.CharField(max_length=60, primary_key=True)
    taken_at = models.DateTimeField()
    rows = models.JSONField(default=list)

    def __str__(self) -> str:
        return self.name
