"""Snapshots of apps' and versions' statistics, for charts: a row for each run of the feeder that found a change."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from credit.models.apps import App
from credit.models.versions import AppVersion


class AppSnapshot(models.Model):
    """An app's lowest average after a run of the feeder that changed it."""

    app = models.ForeignKey(App, models.CASCADE, related_name="snapshots", db_index=False)
    taken_at = models.DateTimeField()
    min_avg_pfc = models.FloatField(null=True)

    class Meta:
        verbose_name = _("snapshot of an app")
        verbose_name_plural = _("snapshots of apps")
        constraints = [models.UniqueConstraint(fields=["app", "taken_at"], name="appsnapshot_app_taken_at")]

    def __str__(self) -> str:
        return f"{self.app} at {self.taken_at:%Y-%m-%d %H:%M}"


class AppVersionSnapshot(models.Model):
    """A version's statistics at a run of the feeder that found them changed."""

    app_version = models.ForeignKey(AppVersion, models.CASCADE, related_name="snapshots", db_index=False)
    taken_at = models.DateTimeField()
    pfc_n = models.BigIntegerField()
    pfc_avg = models.FloatField(null=True)
    pfc_scale = models.FloatField(null=True)
    expavg_credit = models.FloatField()

    class Meta:
        verbose_name = _("snapshot of an app version")
        verbose_name_plural = _("snapshots of app versions")
        constraints = [
            models.UniqueConstraint(fields=["app_version", "taken_at"], name="appversionsnapshot_version_taken_at")
        ]

    def __str__(self) -> str:
        return f"{self.app_version} at {self.taken_at:%Y-%m-%d %H:%M}"
