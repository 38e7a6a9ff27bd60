"""Jobs being prepared and in progress: drafts of batches, leases of ready jobs, trickle messages, steps to retry."""

from __future__ import annotations

import secrets

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from credit.models import App, Batch, Result, Workunit
from portal.languages.sentences import MessageField
from portal.models import Host, User


def new_request_id() -> str:
    """Return the request id of a submission from the browser: unique, but not secret."""
    return f"web-{secrets.token_hex(16)}"


class Generation(models.Model):
    """A generation of job names, begun by each restore of the database: names sent from then on end in its mark.

    The mark is derived from the time, so that none is used twice, whichever backup is restored next.
    """

    mark = models.CharField(max_length=8, unique=True)
    begun_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.mark


class SubmissionDraft(models.Model):
    """Jobs that were uploaded in the browser and are reviewed before they are submitted.

    ``defaults``: what all jobs have in common, as the fields of a job; ``open_name``: the programs' name for each file
    of an archive without a table.
    """

    # NULL: the account is closed; the upload is deleted with other old drafts
    owner = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")
    app = models.ForeignKey(App, models.CASCADE, related_name="+", db_index=False)
    name = models.CharField(max_length=100, blank=True)
    request_id = models.CharField(max_length=64, unique=True, default=new_request_id)
    is_archive = models.BooleanField()
    path = models.CharField(_("where the storage keeps what was uploaded"), max_length=255)
    open_name = models.CharField(max_length=200, blank=True)
    defaults = models.JSONField(default=dict)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    batch = models.OneToOneField(Batch, models.SET_NULL, null=True, related_name="draft")

    class Meta:
        verbose_name = _("draft of a batch")
        verbose_name_plural = _("drafts of batches")

    def __str__(self) -> str:
        return self.name or self.request_id


class JobLease(models.Model):
    """A lease by which only one process keeps the jobs at these positions ready.

    ``lane``: 0, or that of a size class; ``block``: the number of each of the positions, divided by
    `scheduler.ready_jobs.sql.BLOCK`. ``holder``: a random number of the process.
    """

    app = models.ForeignKey(App, models.CASCADE, related_name="+", db_index=False)
    lane = models.BigIntegerField(default=0, db_default=0)
    block = models.BigIntegerField()
    holder = models.BigIntegerField()
    until = models.DateTimeField()

    class Meta:
        verbose_name = _("lease of jobs")
        verbose_name_plural = _("leases of jobs")
        constraints = [models.UniqueConstraint(fields=["app", "lane", "block"], name="joblease_one_holder")]

    def __str__(self) -> str:
        return f"{self.block} of {self.app}"


class Trickle(models.Model):
    """A trickle-up message: stored once however often it is sent, then handed to its app's function."""

    host = models.ForeignKey(Host, models.CASCADE, related_name="trickles", db_index=False, verbose_name=_("computer"))
    user = models.ForeignKey(User, models.CASCADE, related_name="+", db_index=False, verbose_name=_("volunteer"))
    result = models.ForeignKey(
        Result, models.CASCADE, null=True, blank=True, related_name="trickles", verbose_name=_("result")
    )
    variety = models.CharField(_("kind"), max_length=64)
    text = models.TextField(_("text"))
    # The same if a message is sent again
    digest = models.BinaryField(_("digest"), max_length=16)
    written_at = models.DateTimeField(_("time in the message"))
    received_at = models.DateTimeField(_("received"), default=timezone.now)
    handled_at = models.DateTimeField(_("handled"), null=True, blank=True)
    fault = MessageField(_("reason for the failure"))

    class Meta:
        verbose_name = _("trickle-up message")
        verbose_name_plural = _("trickle-up messages")
        constraints = [models.UniqueConstraint(fields=["host", "digest"], name="trickle_once")]
        indexes = [models.Index(fields=["id"], condition=Q(handled_at__isnull=True), name="trickle_to_handle")]

    def __str__(self) -> str:
        return f"{self.host} · {self.variety}"


class TrickleDown(models.Model):
    """A message to a running job: in each reply until its computer is known to have it (`engine.trickle_downs`)."""

    result = models.ForeignKey(
        Result, models.CASCADE, related_name="trickle_downs", db_index=False, verbose_name=_("result")
    )
    text = models.TextField(_("text"))
    created_at = models.DateTimeField(_("created"), default=timezone.now, editable=False)
    # The deadline that accompanied the message in its first reply; a client that reports it has had the message
    told_deadline_at = models.DateTimeField(_("deadline told with it"), null=True, blank=True)
    acknowledged_at = models.DateTimeField(_("acknowledged"), null=True, blank=True)

    class Meta:
        verbose_name = _("trickle-down message")
        verbose_name_plural = _("trickle-down messages")
        indexes = [
            models.Index(fields=["result"], name="trickledown_result"),
            models.Index(fields=["result"], condition=Q(acknowledged_at__isnull=True), name="trickledown_to_tell"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(acknowledged_at__isnull=True) | Q(told_deadline_at__isnull=False),
                name="trickledown_told_before_acknowledged",
            )
        ]

    def __str__(self) -> str:
        return f"{self.result} · {self.pk}"


class Step(models.TextChoices):
    """The background steps of a workunit."""

    TRANSITION = "transition", _("state transition")
    ASSIMILATE = "assimilate", _("assimilation")
    DELETE_FILES = "delete_files", _("deletion of files")
    ARCHIVE = "archive", _("archiving")


class RetryEntry(models.Model):
    """An entry of the retry queue: a workunit made a background step fail, and waits to be retried."""

    workunit = models.ForeignKey(
        Workunit, models.CASCADE, related_name="retry_entries", db_index=False, verbose_name=_("workunit")
    )
    step = models.CharField(_("step"), max_length=16, choices=Step)
    fault = models.CharField(_("fault"), max_length=500)
    ntries = models.PositiveIntegerField(_("tries"), default=1)
    since = models.DateTimeField(_("since"), default=timezone.now)
    retry_at = models.DateTimeField(_("next try"))

    class Meta:
        ordering = ["-since"]
        verbose_name = _("workunit to retry")
        verbose_name_plural = _("workunits to retry")
        constraints = [models.UniqueConstraint(fields=["workunit", "step"], name="retryentry_once")]

    def __str__(self) -> str:
        return f"{self.workunit}: {self.get_step_display()}"
