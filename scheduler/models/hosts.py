"""What the scheduler knows of computers and of their owners."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import CheckConstraint, Q
from django.utils.translation import gettext_lazy as _

from portal.models import Host, User
from scheduler.engine.copies import MAX_CPIDS


class HostRecord(models.Model):
    """What the scheduler knows of a host beside its hardware: written at each scheduler RPC."""

    host = models.OneToOneField(Host, models.CASCADE, primary_key=True, related_name="scheduler_record")
    rpc_seqno = models.BigIntegerField(default=0)
    # By which a copy of its client's data folder is found (engine.copies). Its CPIDs, one for each change, at most 3:
    cpids = ArrayField(models.CharField(max_length=32), default=list, db_default=[], blank=True)
    # The client has named all jobs that it was sent before this time. NULL: not known
    named_jobs_until = models.DateTimeField(null=True)
    # The rpc_seqno that last came twice with jobs of two clients, or soon after such a one. NULL: never
    repeated_seqno = models.BigIntegerField(null=True)
    # How many of them, each soon after the one before, came with jobs of two clients
    repeated_times = models.SmallIntegerField(default=0, db_default=0)
    last_rpc_at = models.DateTimeField(null=True)
    # When jobs were last looked for at its request. NULL: not known
    work_asked_at = models.DateTimeField(null=True)
    on_frac = models.FloatField(default=1)
    active_frac = models.FloatField(default=1)
    gpu_active_frac = models.FloatField(default=1)
    connected_frac = models.FloatField(null=True)
    cpu_and_network_available_frac = models.FloatField(null=True)
    duration_correction_factor = models.FloatField(default=1)
    # time_stats, net_stats and disk_usage as last reported
    statistics = models.JSONField(default=dict, blank=True)
    # Of what the computer said it is at its last scheduler request; the account manager has a digest of its own
    hardware_digest = models.BinaryField(max_length=16, default=bytes, editable=False)
    # Sentences of the last reply on why nothing was sent
    last_messages = models.JSONField(default=list, blank=True)
    # The last (UTC) day that it was sent jobs on, and how many of each (host, version) record then: for quotas. Here,
    # not in those records: this row is written at each request anyway.
    jobs_day = models.DateField(null=True, blank=True)
    # [[app, version or 0, processor type, jobs], …], with a fifth number where some ended without having been computed
    jobs_of_day = models.JSONField(default=list, blank=True)

    class Meta:
        verbose_name = _("scheduler record of a computer")
        verbose_name_plural = _("scheduler records of computers")
        constraints = [CheckConstraint(condition=Q(cpids__len__lte=MAX_CPIDS), name="hostrecord_cpids_len")]

    def __str__(self) -> str:
        return str(self.host)


class UserPreferences(models.Model):
    """What a volunteer prefers: in general, as the newest that one of their clients sent, handed on to the others; and
    for this project, as saved on its page. One row, as each request reads it.
    """

    user = models.OneToOneField(User, models.CASCADE, primary_key=True, related_name="scheduler_preferences")
    # When they were saved, by the site where they were: Unix seconds
    mod_time = models.FloatField(default=0, db_default=0)
    text = models.TextField(_("elements of <global_preferences>, as sent"), blank=True, db_default="")
    # By place ("": those without their own), the stored form of `engine.project_preferences`; empty: never chosen
    of_project = models.JSONField(_("for this project, by place"), default=dict, blank=True, db_default={})

    class Meta:
        verbose_name = _("preferences of a volunteer")
        verbose_name_plural = _("preferences of volunteers")

    def __str__(self) -> str:
        return str(self.user)
