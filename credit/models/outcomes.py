"""Hourly sums of how results ended, so that charts of weeks need not count results (credit/figures/outcomes.py)."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from credit.models.apps import App
from credit.models.versions import AppVersion


class ResultHour(models.Model):
    """How many results of an app's version came in, or timed out, in an hour (UTC) with an outcome and exit status.

    After a month the hours of a day are merged into its first hour.
    """

    hour = models.DateTimeField()
    app = models.ForeignKey(App, models.CASCADE, related_name="+", db_index=False)
    # NULL: anonymous platform, or never sent
    app_version = models.ForeignKey(AppVersion, models.CASCADE, null=True, related_name="+", db_index=False)
    outcome = models.PositiveSmallIntegerField()
    # NULL: a rarer one
    exit_status = models.IntegerField(null=True)
    count = models.PositiveBigIntegerField()

    class Meta:
        verbose_name = _("results per hour")
        verbose_name_plural = _("results per hour")
        constraints = [
            models.UniqueConstraint(
                fields=["hour", "app", "app_version", "outcome", "exit_status"],
                nulls_distinct=False,
                name="resulthour_once",
            )
        ]

    def __str__(self) -> str:
        return f"{self.hour:%Y-%m-%d %H} h: {self.count} of {self.app_id}"


class ResultHourMark(models.Model):
    """A single row: results received up to this time are counted."""

    counted_until = models.DateTimeField()

    class Meta:
        verbose_name = _("time results were counted until")
        verbose_name_plural = _("times results were counted until")
        constraints = [models.CheckConstraint(condition=models.Q(id=1), name="resulthourmark_is_one")]

    def __str__(self) -> str:
        return f"counted until {self.counted_until:%Y-%m-%d %H:%M:%S}"
