"""The project server's tables: files, keys, plan classes, what it knows of hosts, uploads, trickles, the retry queue.

Apps, workunits and results are validated credit's (credit.models).
"""

from __future__ import annotations

import secrets

from django.contrib.postgres.fields import ArrayField
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import CheckConstraint, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from credit.models import PROCESSOR_TYPES, SAFE_NAME, App, AppVersion, Batch, ProcessorType, Result, Workunit
from portal.models import Host, User
from scheduler.engine.copies import MAX_CPIDS
from scheduler.keyword_models import AppKeyword as AppKeyword


class StoredFile(models.Model):
    """A file that clients download: a program or an input. Its name is its own for ever, its content never changes."""

    name = models.CharField(_("name"), max_length=200, unique=True, validators=[SAFE_NAME])
    path = models.CharField(_("path in the storage"), max_length=255)
    nbytes = models.BigIntegerField(_("size (bytes)"))
    md5 = models.CharField(_("MD5"), max_length=32)
    # Hex lines of the code-signing signature; empty for input files
    signature = models.TextField(_("signature"), blank=True)
    is_executable = models.BooleanField(_("executable"), default=False)
    # An input of this batch's jobs only, removed with the last of them; NULL: stays
    batch = models.ForeignKey(
        Batch, models.PROTECT, null=True, blank=True, related_name="files", db_index=False, verbose_name=_("batch")
    )
    created_at = models.DateTimeField(_("created"), default=timezone.now, editable=False)
    deleted_at = models.DateTimeField(_("deleted"), null=True, blank=True)

    class Meta:
        verbose_name = _("stored file")
        verbose_name_plural = _("stored files")
        ordering = ["name"]
        constraints = [CheckConstraint(condition=Q(nbytes__gte=0), name="storedfile_nbytes_range")]
        indexes = [models.Index(fields=["batch"], condition=Q(batch__isnull=False), name="storedfile_batch")]

    def __str__(self) -> str:
        return self.name


class VersionFile(models.Model):
    """A file of an app version, and what the program sees it as."""

    app_version = models.ForeignKey(AppVersion, models.CASCADE, related_name="files", db_index=False)
    file = models.ForeignKey(StoredFile, models.PROTECT, related_name="versions")
    open_name = models.CharField(max_length=200, blank=True)
    is_main_program = models.BooleanField(default=False)
    is_copied = models.BooleanField(_("copied into the job’s folder"), default=False)

    class Meta:
        verbose_name = _("file of a version")
        verbose_name_plural = _("files of versions")
        constraints = [
            models.UniqueConstraint(fields=["app_version", "file"], name="versionfile_once"),
            models.UniqueConstraint(
                fields=["app_version"], condition=Q(is_main_program=True), name="versionfile_one_main_program"
            ),
        ]

    def __str__(self) -> str:
        return self.file.name


class ReleaseDraft(models.Model):
    """A version of an app that is being prepared in the browser. Nothing of it is released before it is signed.

    ``fields``: those of version.toml (docs/how-to/jobs.md) but for the files.
    """

    creator = models.ForeignKey(
        User, models.SET_NULL, null=True, blank=True, related_name="+", db_index=False, verbose_name=_("creator")
    )
    fields = models.JSONField(_("fields"), default=dict)
    created_at = models.DateTimeField(_("created"), default=timezone.now, editable=False)
    # The version that was made of it; its files are then no longer here
    app_version = models.OneToOneField(
        AppVersion, models.SET_NULL, null=True, blank=True, related_name="draft", verbose_name=_("app version")
    )

    class Meta:
        verbose_name_plural = _("new versions")
        ordering = ["-id"]
        verbose_name = _("new version")
        permissions = [
            ("release_appversion", gettext_noop("Can test, release, withdraw and roll back versions of apps"))
        ]

    def __str__(self) -> str:
        number, plan_class = self.fields.get("version_num", 0) / 100, self.fields.get("plan_class")
        label = f"{number:.2f}" + (f" ({plan_class})" if plan_class else "")
        return f"{self.fields.get('app', '')} {label} {self.fields.get('platform', '')}"


class DraftFile(models.Model):
    """A program file that was uploaded for a draft, with its signature once there is one."""

    draft = models.ForeignKey(ReleaseDraft, models.CASCADE, related_name="files", db_index=False)
    name = models.CharField(max_length=200, validators=[SAFE_NAME])
    path = models.CharField(_("path in the storage"), max_length=255)
    nbytes = models.BigIntegerField()
    md5 = models.CharField(max_length=32)
    open_name = models.CharField(max_length=200, blank=True)
    is_main_program = models.BooleanField(default=False)
    is_executable = models.BooleanField(default=False)
    is_copied = models.BooleanField(default=False)
    signature = models.TextField(blank=True)

    class Meta:
        verbose_name = _("file of a draft")
        verbose_name_plural = _("files of drafts")
        ordering = ["id"]
        constraints = [models.UniqueConstraint(fields=["draft", "name"], name="draftfile_once")]

    def __str__(self) -> str:
        return self.name


class BetaTest(models.Model):
    """A version that is tested: only computers of these people get it. One that was sent to all has no such row."""

    app_version = models.OneToOneField(AppVersion, models.CASCADE, primary_key=True, related_name="beta_test")
    begun_by = models.ForeignKey(User, models.SET_NULL, null=True, blank=True, related_name="+", db_index=False)
    with_volunteers = models.BooleanField(_("also for volunteers who agreed to test"), default=False)
    begun_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        verbose_name = _("test of a version")
        verbose_name_plural = _("tests of versions")

    def __str__(self) -> str:
        return str(self.app_version)


class BetaTester(models.Model):
    """A volunteer who agreed to get versions that are still tested."""

    user = models.OneToOneField(User, models.CASCADE, primary_key=True, related_name="beta_tester")
    agreed_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        verbose_name = _("tester")
        verbose_name_plural = _("testers")

    def __str__(self) -> str:
        return str(self.user)


class PlanClass(models.Model):
    """Which hosts can run the versions of a plan class, and how many FLOPS of their devices those use."""

    name = models.CharField(_("name"), max_length=64, unique=True, validators=[SAFE_NAME])
    processor_type = models.CharField(
        _("processor type"), max_length=16, choices=PROCESSOR_TYPES, default=ProcessorType.CPU
    )
    min_ncpus = models.PositiveIntegerField(_("minimum processors"), default=0)
    max_ncpus = models.PositiveIntegerField(
        _("processors used at most"), default=1, validators=[MinValueValidator(1), MaxValueValidator(1024)]
    )
    cpu_features = models.CharField(_("required processor features"), max_length=200, blank=True)
    min_gpu_ram_bytes = models.BigIntegerField(_("minimum GPU memory (bytes)"), default=0)
    min_driver_version = models.PositiveIntegerField(_("minimum driver version"), default=0)
    min_compute_capability = models.PositiveIntegerField(
        _("minimum compute capability"), default=0, help_text=_("Major × 100 + minor, for example 705. NVIDIA only.")
    )
    needs_opencl = models.BooleanField(_("needs OpenCL"), default=False)
    needs_docker = models.BooleanField(_("needs Docker"), default=False, db_default=False)
    needs_wsl = models.BooleanField(_("needs WSL"), default=False, db_default=False)
    avg_ncpus = models.FloatField(
        _("processors used"), default=1, validators=[MinValueValidator(0), MaxValueValidator(1024)]
    )
    gpu_usage = models.FloatField(
        _("GPUs used"),
        default=0,
        validators=[MinValueValidator(0), MaxValueValidator(64)],
        help_text=_("For a GPU type, 0 means the value of the version."),
    )

    class Meta:
        verbose_name = _("plan class")
        ordering = ["name"]
        verbose_name_plural = _("plan classes")
        constraints = [
            # Of nothing the peak FLOPS is 0, and its versions would never be sent.
            CheckConstraint(
                condition=Q(processor_type=ProcessorType.CPU, gpu_usage=0, avg_ncpus__gt=0)
                | (~Q(processor_type=ProcessorType.CPU) & Q(gpu_usage__gte=0, avg_ncpus__gte=0)),
                name="planclass_uses_something",
            ),
            CheckConstraint(condition=Q(max_ncpus__gte=1), name="planclass_max_ncpus"),
        ]

    def __str__(self) -> str:
        return self.name


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
    # [[app, version or 0, processor type, jobs], …]
    jobs_of_day = models.JSONField(default=list, blank=True)

    class Meta:
        verbose_name = _("scheduler record of a computer")
        verbose_name_plural = _("scheduler records of computers")
        constraints = [CheckConstraint(condition=Q(cpids__len__lte=MAX_CPIDS), name="hostrecord_cpids_len")]

    def __str__(self) -> str:
        return str(self.host)


class Upload(models.Model):
    """An output file on its way or here. Its name says which result it is of: <result name>_<n>."""

    result = models.ForeignKey(Result, models.CASCADE, related_name="uploads")
    name = models.CharField(max_length=160, unique=True)
    path = models.CharField(_("path in the storage"), max_length=255, blank=True)
    nbytes = models.BigIntegerField(_("total size (bytes)"))
    received_nbytes = models.BigIntegerField(default=0)
    md5 = models.CharField(max_length=32)
    started_at = models.DateTimeField(default=timezone.now)
    completed_at = models.DateTimeField(null=True, blank=True)
    # Where uploads are kept in parts: the request that may write now, and until when nobody else may
    writer = models.UUIDField(null=True, editable=False)
    writer_until = models.DateTimeField(null=True, editable=False)

    class Meta:
        verbose_name = _("upload")
        verbose_name_plural = _("uploads")
        constraints = [
            CheckConstraint(
                condition=Q(nbytes__gte=0, received_nbytes__gte=0, received_nbytes__lte=models.F("nbytes")),
                name="upload_nbytes_range",
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_complete(self) -> bool:
        """Whether all of it is here, with the MD5 that the client announced."""
        return self.completed_at is not None


class IncomingPart(models.Model):
    """An object that an upload writes to the storage: known before it is there, so that it is never forgotten.

    In force, it is a part of the upload of this name. Else nobody needs it, or its request is still at it.
    """

    path = models.CharField(_("path in the storage"), max_length=255, unique=True)
    name = models.CharField(max_length=160)
    offset = models.BigIntegerField()
    nbytes = models.BigIntegerField(_("size (bytes)"))
    is_in_force = models.BooleanField(default=False)
    begun_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [CheckConstraint(condition=Q(offset__gte=0, nbytes__gte=0), name="incomingpart_range")]
        indexes = [
            models.Index(fields=["name", "offset"], name="incomingpart_name"),
            models.Index(fields=["begun_at"], name="incomingpart_begun"),
        ]

    def __str__(self) -> str:
        return self.path


class KeptOutput(models.Model):
    """An output file of a validated workunit, offered for download until its batch is retired."""

    batch = models.ForeignKey(Batch, models.PROTECT, null=True, related_name="outputs", db_index=False)
    workunit_name = models.CharField(max_length=128)
    number = models.PositiveSmallIntegerField()
    name = models.CharField(_("name for the program"), max_length=200)
    path = models.CharField(_("path in the storage"), max_length=255)
    nbytes = models.BigIntegerField()
    md5 = models.CharField(max_length=32)
    kept_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name = _("kept output")
        verbose_name_plural = _("kept outputs")
        constraints = [models.UniqueConstraint(fields=["workunit_name", "number"], name="keptoutput_once")]
        indexes = [models.Index(fields=["batch", "id"], name="keptoutput_batch")]

    def __str__(self) -> str:
        return f"{self.workunit_name}/{self.name}"


class ArchivedWorkunit(models.Model):
    """A workunit that was purged. ``facts``: its columns by name, as JSON has them."""

    id = models.BigIntegerField(primary_key=True)
    app = models.ForeignKey(App, models.PROTECT, related_name="+", db_index=False)
    batch = models.ForeignKey(Batch, models.PROTECT, null=True, related_name="archived_workunits", db_index=False)
    name = models.CharField(max_length=128, unique=True)
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
    """A result that was purged with its workunit: all of its columns but output and stderr, so its credit is explained.

    Its owner and computer are columns, so that they are forgotten here too when an account is erased.
    """

    id = models.BigIntegerField(primary_key=True)
    workunit = models.ForeignKey(ArchivedWorkunit, models.CASCADE, related_name="tasks")
    user = models.ForeignKey(User, models.SET_NULL, null=True, related_name="archived_tasks", db_index=False)
    host = models.ForeignKey(Host, models.SET_NULL, null=True, related_name="+")
    app_version = models.ForeignKey(AppVersion, models.SET_NULL, null=True, related_name="+", db_index=False)
    facts = models.JSONField()
    # Added to the days of `credit.models.ArchivedDay`; not yet, if it was archived by a version that knew none
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


class Trickle(models.Model):
    """A trickle-up message: stored once however often it is sent, then handed to its app's function."""

    host = models.ForeignKey(Host, models.CASCADE, related_name="trickles", db_index=False, verbose_name=_("computer"))
    user = models.ForeignKey(User, models.CASCADE, related_name="+", db_index=False, verbose_name=_("volunteer"))
    result = models.ForeignKey(
        Result, models.CASCADE, null=True, blank=True, related_name="trickles", verbose_name=_("result")
    )
    variety = models.CharField(_("kind"), max_length=64)
    text = models.TextField(_("text"))
    # Equal for a message that is sent again
    digest = models.BinaryField(_("digest"), max_length=16)
    written_at = models.DateTimeField(_("time in the message"))
    received_at = models.DateTimeField(_("received"), default=timezone.now)
    handled_at = models.DateTimeField(_("handled"), null=True, blank=True)
    fault = models.CharField(_("reason for the failure"), max_length=200, blank=True)

    class Meta:
        verbose_name = _("trickle-up message")
        verbose_name_plural = _("trickle-up messages")
        constraints = [models.UniqueConstraint(fields=["host", "digest"], name="trickle_once")]
        indexes = [models.Index(fields=["id"], condition=Q(handled_at__isnull=True), name="trickle_to_handle")]

    def __str__(self) -> str:
        return f"{self.host} · {self.variety}"


class KeyChange(models.Model):
    """The code-signing key was changed: who has the old one believes the new one, as the old one signed it.

    Keys are texts as clients get them, without the line feed at the end.
    """

    old_key = models.TextField(_("old public key"))
    new_key = models.TextField(_("new public key"))
    signature = models.TextField(_("signature of the new key with the old one"))
    changed_at = models.DateTimeField(_("changed"), default=timezone.now)

    class Meta:
        verbose_name = _("change of the code-signing key")
        verbose_name_plural = _("changes of the code-signing key")
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(fields=["old_key"], name="keychange_one_successor"),
            models.UniqueConstraint(fields=["new_key"], name="keychange_one_forerunner"),
            CheckConstraint(condition=~Q(old_key=models.F("new_key")), name="keychange_changes"),
        ]

    def __str__(self) -> str:
        return f"{self.changed_at:%Y-%m-%d %H:%M}"


class Step(models.TextChoices):
    """What is done with a workunit in the background."""

    TRANSITION = "transition", _("state transition")
    ASSIMILATE = "assimilate", _("assimilation")
    DELETE_FILES = "delete_files", _("deletion of files")
    ARCHIVE = "archive", _("archiving")


class RetryEntry(models.Model):
    """An entry of the retry queue: a workunit made a background step fail, and waits until it is tried again."""

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
        verbose_name_plural = _("retry queue")
        constraints = [models.UniqueConstraint(fields=["workunit", "step"], name="retryentry_once")]

    def __str__(self) -> str:
        return f"{self.workunit}: {self.get_step_display()}"


class LoginToken(models.Model):
    """A token by which a freshly installed client logs in, once; only its hash is kept."""

    user = models.OneToOneField(User, models.CASCADE, primary_key=True, related_name="login_token")
    token_hash = models.BinaryField(max_length=32, editable=False)
    made_at = models.DateTimeField()

    class Meta:
        verbose_name = _("login token")
        verbose_name_plural = _("login tokens")

    def __str__(self) -> str:
        return f"login token of {self.user}"


class UserPreferences(models.Model):
    """A volunteer's global preferences as the newest that one of their clients sent, handed on to the others."""

    user = models.OneToOneField(User, models.CASCADE, primary_key=True, related_name="scheduler_preferences")
    # When they were saved, by the site where they were: Unix seconds
    mod_time = models.FloatField()
    text = models.TextField(_("elements of <global_preferences>, as sent"))

    class Meta:
        verbose_name = _("preferences of a volunteer")
        verbose_name_plural = _("preferences of volunteers")

    def __str__(self) -> str:
        return str(self.user)


class JobLease(models.Model):
    """Until the lease ends, one process alone keeps the jobs of these workunits ready.

    ``block``: the number of each of the workunits, divided by `scheduler.ready_jobs.sql.BLOCK`.
    ``holder``: a random number of the process.
    """

    app = models.ForeignKey(App, models.CASCADE, related_name="+", db_index=False)
    block = models.BigIntegerField()
    holder = models.BigIntegerField()
    until = models.DateTimeField()

    class Meta:
        verbose_name = _("lease of jobs")
        verbose_name_plural = _("leases of jobs")
        constraints = [models.UniqueConstraint(fields=["app", "block"], name="joblease_one_holder")]

    def __str__(self) -> str:
        return f"{self.block} of {self.app}"


def new_request_id() -> str:
    """Of a submission from the browser: unique, and no secret."""
    return f"web-{secrets.token_hex(16)}"


class SubmissionDraft(models.Model):
    """Jobs that were uploaded in the browser and are looked at before they are submitted.

    ``defaults``: what all jobs have in common, as the fields of a job; ``open_name``: what programs call the file of an
    archive that has no table.
    """

    # NULL: the account is closed; what was uploaded is deleted with other old drafts
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
