"""Files made for volunteers on demand: copies of their data, and long histories."""

from __future__ import annotations

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from portal.models import User


class DataCopy(models.Model):
    """A file that a worker makes for a volunteer (accounting/exchange/made_files.py).

    It is a copy of everything stored about them (accounting/account_data/copies.py), or a range of days of their
    history (accounting/exchange/exports.py).
    """

    class Content(models.TextChoices):
        ALL = "all", _("everything")
        CSV = "csv", _("history as CSV")
        JSON = "json", _("history as JSON")

    class State(models.TextChoices):
        WAITING = "waiting", _("waiting for its turn")
        WORKING = "working", _("being made")
        READY = "ready", _("ready")
        FAILED = "failed", _("failed")

    user = models.ForeignKey(User, models.CASCADE, related_name="data_copies")
    content = models.CharField(max_length=8, choices=Content, default=Content.ALL)
    # The range of the history, both days included
    first = models.DateField("first day", null=True, blank=True)
    last = models.DateField("last day", null=True, blank=True)
    # The requested part of the history; none of them: all of it
    only_host = models.BigIntegerField(null=True, blank=True)
    only_project = models.BigIntegerField(null=True, blank=True)
    only_app = models.BigIntegerField(null=True, blank=True)
    only_processor = models.CharField(max_length=3, blank=True, default="", db_default="")
    state = models.CharField(max_length=8, choices=State, default=State.WAITING)
    percent = models.PositiveSmallIntegerField("how much of it is done", default=0)
    size_bytes = models.BigIntegerField(default=0)
    asked_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-asked_at"]
        verbose_name_plural = "data copies"
        constraints = [
            models.CheckConstraint(
                condition=models.Q(content="all", first=None, last=None)
                | (~models.Q(content="all") & models.Q(first__isnull=False, last__gte=models.F("first"))),
                name="datacopy_days",
            )
        ]

    def __str__(self) -> str:
        return f"copy for {self.user}, {self.state}"


class DataCopyPart(models.Model):
    """A piece of a copy's file, stored in the database, as web servers and workers may be on different machines."""

    copy = models.ForeignKey(DataCopy, models.CASCADE, related_name="parts", db_index=False)
    number = models.PositiveIntegerField()
    content = models.BinaryField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["copy", "number"], name="datacopypart_once")]

    def __str__(self) -> str:
        return f"part {self.number} of {self.copy_id}"
