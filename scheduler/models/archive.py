"""Archived workunits and tasks, kept for their owners."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from credit.models import App, AppVersion, Batch
from credit.models.work import MAX_WORKUNIT_NAME_CHARS
from portal.models import Host, User


class ArchivedWorkunit(models.Model):
    """A purged workunit. ``facts``: its columns by name, as JSON."""

    id = models.BigIntegerField(primary_key=True)
    app = models.ForeignKey(App, models.PROTECT, related_name="+", db_index=False)
    batch = models.ForeignKey(Batch, models.PROTECT, null=True, related_name="archived_workunits", db_index=False)
    name = models.CharField(max_length=MAX_WORKUNIT_NAME_CHARS, unique=True)
    error_mask = models.PositiveSmallIntegerField()
    facts = models.JSONField()
    archived_at = models.DateTimeField()

    class Meta:
        verbose_name = _("archived workunit")
        verbose_name_plural = _("archived workunits")
        indexes = [models.Index(fields=["batch"], condition=Q(batch__isnull=False), name="archivedworkunit_batch")]

    def __str__(self) -> str:
        return self.name


class ArchivedTask(models.Model):
    """A result that was purged with its workunit: all columns except output and stderr, so its credit can be explained.

    Its owner and computer are columns, so that they are forgotten here too when an account is erased.
    """

    id = models.BigIntegerField(primary_key=True)
    workunit = models.ForeignKey(ArchivedWorkunit, models.CASCADE, related_name="tasks")
    user = models.ForeignKey(User, models.SET_NULL, null=True, related_name="archived_tasks", db_index=False)
    host = models.ForeignKey(Host, models.SET_NULL, null=True, related_name="+")
    app_version = models.ForeignKey(AppVersion, models.SET_NULL, null=True, related_name="+", db_index=False)
    facts = models.JSONField()
    # Whether it was added to the days of `credit.models.ArchivedDay`; not at first if it was imported with a moved
    # project
    is_counted = models.BooleanField(db_default=False, editable=False)

    class Meta:
        verbose_name = _("archived task")
        verbose_name_plural = _("archived tasks")
        indexes = [
            models.Index(fields=["user", "-id"], condition=Q(user__isnull=False), name="archivedtask_user"),
            models.Index(fields=["id"], condition=Q(is_counted=False), name="archivedtask_uncounted"),
        ]

    def __str__(self) -> str:
        return str(self.facts.get("name", self.pk))
