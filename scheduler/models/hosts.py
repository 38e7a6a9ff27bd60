"""The scheduler's records of computers and their owners."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import CheckConstraint, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from portal.models import Host, User
from scheduler.engine.copies import MAX_CPIDS


class HostRecord(models.Model):
    """The scheduler's record of a host besides its hardware: written at each scheduler RPC."""

    host = models.OneToOneField(Host, models.CASCADE, primary_key=True, related_name="scheduler_record")
    rpc_seqno = models.BigIntegerField(default=0)
    # Used to detect copies of its client's data folder (engine.copies). Its CPIDs, one for each change, at most 3:
    cpids = ArrayField(models.CharField(max_length=32), default=list, db_default=[], blank=True)
    # The client has named all jobs that it was sent before this time. NULL: unknown
    named_jobs_until = models.DateTimeField(null=True)
    # The rpc_seqno that last came twice with jobs of two clients, or soon after such a one. NULL: never
    repeated_seqno = models.BigIntegerField(null=True)
    # How many of them in a row came with jobs of two clients
    repeated_times = models.SmallIntegerField(default=0, db_default=0)
    last_rpc_at = models.DateTimeField(null=True)
    # When one of its requests last led to a search for jobs. NULL: unknown
    work_asked_at = models.DateTimeField(null=True)
    on_frac = models.FloatField(default=1)
    active_frac = models.FloatField(default=1)
    gpu_active_frac = models.FloatField(default=1)
    connected_frac = models.FloatField(null=True)
    cpu_and_network_available_frac = models.FloatField(null=True)
    duration_correction_factor = models.FloatField(default=1)
    # time_stats, net_stats and disk_usage as last reported
    statistics = models.JSONField(default=dict, blank=True)
    # Digest of its description in the last scheduler request; the account manager has its own digest
    hardware_digest = models.BinaryField(max_length=16, default=bytes, editable=False)
    # The last reply's sentences on why nothing was sent
    last_messages = models.JSONField(default=list, blank=True)
    # The last (UTC) day on which it was sent jobs, and how many of each (host, version) record then: for quotas. Here
    # rather than in those records, because this row is written at each request anyway.
    jobs_day = models.DateField(null=True, blank=True)
    # [[app, version or 0, processor type, jobs], …], with a fifth number if some ended without having been computed
    jobs_of_day = models.JSONField(default=list, blank=True)

    class Meta:
        verbose_name = _("scheduler record of a computer")
        verbose_name_plural = _("scheduler records of computers")
        constraints = [CheckConstraint(condition=Q(cpids__len__lte=MAX_CPIDS), name="hostrecord_cpids_len")]

    def __str__(self) -> str:
        return str(self.host)


class WorkBlock(models.Model):
    """A block: a computer, or all of a volunteer's, gets no new jobs. Its owner reads the reason.

    Jobs that it has may still be reported, and are credited.
    """

    host = models.OneToOneField(
        Host, models.CASCADE, null=True, blank=True, related_name="work_block", verbose_name=_("computer")
    )
    user = models.OneToOneField(
        User, models.CASCADE, null=True, blank=True, related_name="work_block", verbose_name=_("volunteer")
    )
    reason = models.CharField(
        _("reason"),
        max_length=300,
        help_text=_("The owner reads it on the computer’s page and in BOINC: what is wrong, and what they can do."),
    )
    created_at = models.DateTimeField(_("blocked since"), default=timezone.now, editable=False)

    class Meta:
        verbose_name = _("block from work")
        verbose_name_plural = _("blocks from work")
        ordering = ["-id"]
        constraints = [
            CheckConstraint(
                condition=Q(host__isnull=False, user__isnull=True) | Q(host__isnull=True, user__isnull=False),
                name="workblock_of_one",
                violation_error_message=_("Choose a computer or a volunteer, not both."),
            ),
            CheckConstraint(condition=~Q(reason=""), name="workblock_has_reason"),
        ]

    def __str__(self) -> str:
        return str(self.host or self.user)


class UserPreferences(models.Model):
    """A volunteer's preferences: the newest general ones that one of their clients sent, passed on to the others; and
    those for this project, as saved on its page. A single row, because each request reads it.
    """

    user = models.OneToOneField(User, models.CASCADE, primary_key=True, related_name="scheduler_preferences")
    # When they were saved, and on which site: Unix seconds
    mod_time = models.FloatField(default=0, db_default=0)
    text = models.TextField(_("elements of <global_preferences>, as sent"), blank=True, db_default="")
    # By place ("": those without their own), in the stored form of `engine.project_preferences`; empty: never chosen
    of_project = models.JSONField(_("for this project, by place"), default=dict, blank=True, db_default={})

    class Meta:
        verbose_name = _("preferences of a volunteer")
        verbose_name_plural = _("preferences of volunteers")

    def __str__(self) -> str:
        return str(self.user)
