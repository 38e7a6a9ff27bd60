"""Records of changes that affect credit: the preview that was seen, and the statistics before a reset."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from credit.models.host_records import HostAppVersion
from credit.models.previews import Preview
from credit.models.versions import AppVersion
from portal.models import Change


class CreditChange(models.Model):
    """A change of credit: the preview that was seen before it, and its effects.

    ``effects``: the figures of `credit.changes.effects`, stored once the time after the change is over, because results
    are deleted eventually.
    """

    change = models.OneToOneField(Change, models.CASCADE, related_name="credit")
    preview = models.ForeignKey(Preview, models.SET_NULL, null=True, blank=True, related_name="changes_made")
    effects: models.JSONField[dict[str, Any] | None, dict[str, Any] | None] = models.JSONField(null=True, blank=True)

    class Meta:
        verbose_name = _("change of credit")
        verbose_name_plural = _("changes of credit")

    def __str__(self) -> str:
        return str(self.change)


class _PfcAverages(models.Model):
    """A snapshot of the averages of a version, or of a computer with it."""

    pfc_n = models.BigIntegerField()
    pfc_avg = models.FloatField(null=True)

    class Meta:
        abstract = True


class StatisticsSnapshot(_PfcAverages):
    """A version's statistics before a change that replaced them, kept so that they can be restored."""

    change = models.OneToOneField(Change, models.CASCADE, related_name="statistics")
    app_version = models.ForeignKey(AppVersion, models.CASCADE, related_name="statistics_snapshots")
    taken_at = models.DateTimeField(default=timezone.now)
    pfc_scale = models.FloatField(null=True)
    is_counted = models.BooleanField()

    class Meta:
        verbose_name = _("kept statistics")
        verbose_name_plural = _("kept statistics")

    def __str__(self) -> str:
        return f"{self.app_version} at {self.taken_at:%Y-%m-%d %H:%M}"


class HostRecordSnapshot(_PfcAverages):
    """The averages of a computer's record of the version, as they were before a reset."""

    snapshot = models.ForeignKey(StatisticsSnapshot, models.CASCADE, related_name="host_records", db_index=False)
    # No constraint: merging two records of a computer deletes one by a separate statement. That one is not restored.
    record = models.ForeignKey(HostAppVersion, models.DO_NOTHING, related_name="+", db_constraint=False, db_index=False)
    clean_pfc_n = models.BigIntegerField()
    clean_pfc_avg = models.FloatField(null=True)
    waiting_pfc_n = models.BigIntegerField()
    waiting_pfc_avg = models.FloatField(null=True)
    recent_pfc_n = models.BigIntegerField()
    recent_pfc_avg = models.FloatField(null=True)
    samples_at = models.DateTimeField(null=True)
    peak_flops = models.FloatField(null=True)
    lead_jobs = models.FloatField(default=0)
    et_n = models.BigIntegerField()
    et_avg = models.FloatField(null=True)
    et_var = models.FloatField(null=True)
    et_q = models.FloatField()

    class Meta:
        verbose_name = _("stored record of a computer")
        verbose_name_plural = _("stored records of computers")
        constraints = [models.UniqueConstraint(fields=["snapshot", "record"], name="hostrecordsnapshot_once")]

    def __str__(self) -> str:
        return f"{self.record_id} in {self.snapshot_id}"
