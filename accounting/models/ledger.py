"""The ledger: what each computer has been credited at each project, day by day, and notable events."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import CheckConstraint, Func, Q
from django.db.models.lookups import Exact
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounting.engine.amounts import Processor
from accounting.engine.hardware_models import MAX_NAME
from accounting.engine.returns import EARLIER_KEPT
from accounting.models.amounts import Amounts
from accounting.models.projects import Project
from portal.models import Host, User


def _zeros() -> list[int]:
    return [0] * 6


def _no_allowance() -> list[int]:
    return [0] * 5


class HostLedger(models.Model):
    """A host's part of the ledger: allowance and last contact. Its row is the lock for all rows of the host.

    ``level``: allowance left for cpu_time, gpu_time, cpu_ec, gpu_ec (micro) and jobs (micro-jobs); accounting rules, 2.
    """

    host = models.OneToOneField(Host, models.CASCADE, primary_key=True, related_name="ledger")
    last_at = models.DateTimeField("last contact", null=True)
    client_now = models.FloatField("the client's clock at the last contact", null=True)
    # A write happens only if the number is still the one read (accounting/rpc/store.py).
    contacts = models.BigIntegerField("requests answered", default=0)
    level = ArrayField(models.BigIntegerField(), size=5, default=_no_allowance)
    # The owner's wish: BOINC's names of processor types that no project may use here.
    excluded_types = ArrayField(models.CharField(max_length=64), default=list, blank=True)
    # time_stats, net_stats, free disk, run mode, as last reported
    contact = models.JSONField(default=dict)
    # The last answer: its digest, how many different answers there were, and how often this one was given in a row.
    answer_digest = models.CharField(max_length=16, blank=True, default="", editable=False)
    answers_logged = models.IntegerField(default=0, editable=False)
    same_answers = models.IntegerField(default=0, editable=False)

    class Meta:
        constraints = [CheckConstraint(condition=Q(level__len=5), name="hostledger_level_len")]

    def __str__(self) -> str:
        return f"ledger of {self.host}"


class Answer(models.Model):
    """A host's answer, from one contact on, as long as it stayed the same (accounting/rpc/contact_log.py).

    A host has at most `contact_log.MAX_ANSWERS` of them; the next one replaces the oldest.
    """

    pk = models.CompositePrimaryKey("host_id", "slot")
    host = models.ForeignKey(Host, models.CASCADE, related_name="answers", db_index=False)
    slot = models.SmallIntegerField()
    at = models.DateTimeField("first given")
    content = models.JSONField()
    # The answer before this one: how often it was given, and when last.
    before_times = models.IntegerField(default=0)
    before_last_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"answer to {self.host} at {self.at:%Y-%m-%d %H:%M}"


class HostProject(models.Model):
    """A host's totals at a project (accounting rules, "State per host and project"), and the owner's wishes for it."""

    pk = models.CompositePrimaryKey("host_id", "project_id")
    host = models.ForeignKey(Host, models.CASCADE, related_name="host_projects", db_index=False)
    project = models.ForeignKey(Project, models.CASCADE, related_name="host_projects")
    # Totals as a client can claim them go up to 1e21 micro-units, past bigint.
    reported = ArrayField(models.DecimalField(max_digits=22, decimal_places=0), size=6, null=True)
    # The last totals before each reset, which may come back
    earlier = ArrayField(
        ArrayField(models.DecimalField(max_digits=22, decimal_places=0), size=6), size=EARLIER_KEPT, default=list
    )
    # The totals at the last reset, while the client is below earlier ones
    restart = ArrayField(models.DecimalField(max_digits=22, decimal_places=0), size=6, null=True)
    # The kinds of amounts whose sum was no number, and starts over with the first that is one
    broken = ArrayField(models.CharField(max_length=16), default=list, db_default=[])
    handed = ArrayField(models.BigIntegerField(), size=6, null=True)
    credited = ArrayField(models.BigIntegerField(), size=6, default=_zeros)
    pending = ArrayField(models.BigIntegerField(), size=6, default=_zeros)
    dropped = ArrayField(models.DecimalField(max_digits=26, decimal_places=0), size=6, default=_zeros)
    listed = models.BooleanField("in the last request", default=False)
    # The client's last report about it: no_work types, failures, state (small, for the pages).
    state = models.JSONField(default=dict)
    # The owner's wishes, sent with each reply. The end of a suspension is sent once; otherwise suspending is left to
    # the computer.
    suspended = models.BooleanField(default=False)
    told_suspended = models.BooleanField(default=False, editable=False)
    no_new_work = models.BooleanField(default=False)
    excluded = models.BooleanField("not on this computer", default=False)
    no_rsc = ArrayField(models.CharField(max_length=64), default=list, blank=True)
    update_asked = models.BooleanField("contact the project at once", default=False)
    drop_waiting = models.BooleanField("drop jobs that have not begun", default=False)

    class Meta:
        constraints = [
            CheckConstraint(condition=Q(credited__len=6, pending__len=6, dropped__len=6), name="hostproject_six"),
            # NULL passes the check of its length.
            CheckConstraint(condition=Q(restart__len=6), name="hostproject_restart_six"),
            CheckConstraint(
                condition=Q(
                    Exact(Func("earlier", 2, function="array_length", output_field=models.IntegerField()), 6),
                    earlier__len__lte=EARLIER_KEPT,
                ),
                name="hostproject_earlier_sixes",
            ),
            CheckConstraint(
                condition=Q(restart__isnull=True) | Q(earlier__len__gt=0),
                name="hostproject_earlier_and_restart",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.host} at {self.project}"


class HostClient(models.Model):
    """A client that reported with a host's id, by its cross-project id, once another one replaced it.

    Clients with the same cross-project id are told apart by a project and their number there
    (``recognise.number_key``). It may be the same client with its old id, or another one: see
    accounting/rpc/recognise.py. A host's rows are created in the order in which their clients first came.
    """

    host = models.ForeignKey(
        Host,
        models.CASCADE,
        related_name="other_clients",
        db_index=False,
        verbose_name=_("computer"),
    )
    cpid = models.CharField(_("cross-project id"), max_length=80)
    # The totals from which it continues, as of its last report with the host's id
    books = models.JSONField(default=dict)
    seen_at = models.DateTimeField(_("replaced by another id on"), default=timezone.now)
    told_apart_at = models.DateTimeField(_("known to be another client since"), null=True, blank=True)
    # Created when it reports again
    record = models.ForeignKey(
        Host,
        models.CASCADE,
        null=True,
        blank=True,
        related_name="told_apart_from",
        verbose_name=_("its own record"),
    )

    class Meta:
        verbose_name = _("other client of a computer")
        verbose_name_plural = _("other clients of computers")
        constraints = [
            models.UniqueConstraint(fields=["host", "cpid"], name="hostclient_host_cpid"),
            CheckConstraint(condition=Q(record=None) | Q(told_apart_at__isnull=False), name="hostclient_record_apart"),
            CheckConstraint(condition=~Q(cpid=""), name="hostclient_has_cpid"),
        ]

    def __str__(self) -> str:
        return f"{self.host} · {self.cpid}"


class Day(Amounts):
    """What a host was credited at a project on one UTC day. Partitioned by month (accounting/ledger/partitions.py)."""

    pk = models.CompositePrimaryKey("user_id", "day", "project_id", "host_id")
    user = models.ForeignKey(User, models.CASCADE, related_name="+", db_index=False)
    day = models.DateField()
    # Without constraints: the key begins with the user, so a deletion would read all months to check them.
    project = models.ForeignKey(Project, models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False)
    host = models.ForeignKey(Host, models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False)
    # A DayFlag of accounting/engine/states.py
    flags = models.SmallIntegerField(default=0)

    class Meta:
        db_table = "accounting_day"

    def __str__(self) -> str:
        return f"{self.day}: {self.host_id} at {self.project_id}"


class Note(models.Model):
    """Something the owner should know about a host's reports: at most one row per host, day, kind and project."""

    host = models.ForeignKey(Host, models.CASCADE, related_name="notes", db_index=False, verbose_name=_("computer"))
    project = models.ForeignKey(
        Project, models.CASCADE, null=True, related_name="+", db_index=False, verbose_name=_("project")
    )
    day = models.DateField(_("day"))
    kind = models.CharField(_("kind"), max_length=24)
    detail = models.CharField(_("detail"), max_length=300, blank=True)
    # All amounts dropped that day: {kind of amount: micro-units}
    amount = models.DecimalField(_("amount"), max_digits=26, decimal_places=0, default=0)
    count = models.PositiveIntegerField(_("times"), default=1)
    first_at = models.DateTimeField(_("first time"))
    last_at = models.DateTimeField(_("last time"))

    class Meta:
        ordering = ["-last_at"]
        verbose_name = _("note")
        verbose_name_plural = _("notes")
        constraints = [
            models.UniqueConstraint(
                fields=["host", "day", "kind", "project", "detail"],
                nulls_distinct=False,
                name="note_once_a_day",
            )
        ]
        # The number of notes a day, for the dashboard
        indexes = [models.Index(fields=["day", "kind"], name="note_day_kind")]

    def __str__(self) -> str:
        return f"{self.day} {self.kind}"


class ModelSpeed(models.Model):
    """The usual speed of one processor of a model, as computers of several owners report it."""

    processor = models.CharField(max_length=3)
    # As accounting.engine.hardware_models.model_name writes it
    name = models.CharField(max_length=MAX_NAME)
    flops = models.BigIntegerField()
    as_of = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["processor", "name"], name="modelspeed_model"),
            CheckConstraint(condition=Q(processor__in=list(Processor), flops__gt=0), name="modelspeed_range"),
        ]

    def __str__(self) -> str:
        return f"{self.name}: {self.flops / 1e9:g} GFLOPS"
