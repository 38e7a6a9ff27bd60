"""Files in and out: programs and inputs, uploads of outputs, and outputs that are kept."""

from __future__ import annotations

from django.db import models
from django.db.models import CheckConstraint, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from credit.models import JOB_NAME, AppVersion, Batch, Result
from credit.models.work import MAX_WORKUNIT_NAME_CHARS
from portal.models import User
from scheduler.engine.limits import MAX_FORMER_NAME_CHARS, MAX_NAME_CHARS, MAX_UPLOAD_NAME_CHARS


class StoredFile(models.Model):
    """A file that clients download: a program or an input. Its name is never reused, and its content never changes."""

    name = models.CharField(_("name"), max_length=200, unique=True, validators=[JOB_NAME])
    path = models.CharField(_("path in the storage"), max_length=255)
    nbytes = models.BigIntegerField(_("size (bytes)"))
    md5 = models.CharField(_("MD5"), max_length=32)
    # Hex lines of the code-signing signature; empty for input files
    signature = models.TextField(_("signature"), blank=True)
    is_executable = models.BooleanField(_("executable"), default=False)
    # An input only for this batch's jobs, deleted with the last of them; NULL: stays
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


class StickyFile(models.Model):
    """A file on another server that computers keep for a batch's jobs: needed as long as any of them is open."""

    batch = models.ForeignKey(Batch, models.CASCADE, related_name="sticky_files", db_index=False)
    name = models.CharField(max_length=MAX_NAME_CHARS)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["name", "batch"], name="stickyfile_once")]
        indexes = [models.Index(fields=["batch"], name="stickyfile_batch")]

    def __str__(self) -> str:
        return self.name


class VersionFile(models.Model):
    """A file of an app version, and the name by which the program opens it."""

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


class Upload(models.Model):
    """An output file that is arriving or here. Its name says which result it belongs to: <result name>_<n>.

    ``sent_nbytes``, ``sent_md5``: of the file as it was sent, if it was packed by gzip and was unpacked here.
    """

    result = models.ForeignKey(Result, models.CASCADE, related_name="uploads")
    name = models.CharField(max_length=MAX_UPLOAD_NAME_CHARS, unique=True)
    path = models.CharField(_("path in the storage"), max_length=255, blank=True)
    nbytes = models.BigIntegerField(_("total size (bytes)"))
    md5 = models.CharField(max_length=32)
    sent_nbytes = models.BigIntegerField(null=True, blank=True)
    sent_md5 = models.CharField(max_length=32, blank=True)
    started_at = models.DateTimeField(default=timezone.now)
    completed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = _("upload")
        verbose_name_plural = _("uploads")
        constraints = [CheckConstraint(condition=Q(nbytes__gte=0), name="upload_nbytes_range")]

    def __str__(self) -> str:
        return self.name

    @property
    def is_complete(self) -> bool:
        """Whether it is completely here, with the MD5 that the client announced."""
        return self.completed_at is not None

    @property
    def as_sent(self) -> tuple[int, str]:
        """Return the size and MD5 that the client announced."""
        return (self.nbytes, self.md5) if self.sent_nbytes is None else (self.sent_nbytes, self.sent_md5)


class InputUpload(models.Model):
    """An input that a submitter uploads over the REST API, piece by piece; ``file``: once it is stored.

    The part that has arrived is on the disk of one web server (`scheduler.files.inputs`).
    """

    owner = models.ForeignKey(User, models.CASCADE, related_name="+", verbose_name=_("owner"))
    name = models.CharField(_("name"), max_length=MAX_NAME_CHARS, unique=True)
    nbytes = models.BigIntegerField(_("size (bytes)"))
    md5 = models.CharField(_("MD5"), max_length=32)
    continued_at = models.DateTimeField(_("continued"), default=timezone.now)
    file = models.OneToOneField(StoredFile, models.PROTECT, null=True, related_name="+", verbose_name=_("stored file"))

    class Meta:
        verbose_name = _("upload of an input")
        verbose_name_plural = _("uploads of inputs")
        constraints = [CheckConstraint(condition=Q(nbytes__gte=0), name="inputupload_nbytes_range")]

    def __str__(self) -> str:
        return self.name


class FormerUploadKey(models.Model):
    """The public key that verified upload certificates on another server, before its project moved here."""

    text = models.TextField(unique=True)

    def __str__(self) -> str:
        return f"{self.text[:20]}…"


class FormerOutput(models.Model):
    """An output file of a result that another server sent: its computer uploads it under that server's name.

    ``key`` has signed its certificate. NULL: it has none, so only its name shows that it was requested; BOINC's servers
    include a random number. The row is deleted with its result, and with the last one nothing is verified by the key
    any more.
    """

    name = models.CharField(max_length=MAX_FORMER_NAME_CHARS, unique=True)
    result = models.ForeignKey(Result, models.CASCADE, related_name="former_outputs", db_index=False)
    number = models.PositiveSmallIntegerField()
    key = models.ForeignKey(FormerUploadKey, models.PROTECT, null=True, related_name="+", db_index=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["result", "number"], name="formeroutput_once")]

    def __str__(self) -> str:
        return self.name


class PendingFile(models.Model):
    """A file that an upload puts into the storage: recorded before it is there, so that it is never forgotten.

    It is no longer pending once the upload's row names it.
    """

    path = models.CharField(_("path in the storage"), max_length=255)
    begun_at = models.DateTimeField(default=timezone.now, db_index=True)

    def __str__(self) -> str:
        return self.path


class KeptOutput(models.Model):
    """An output file of a validated workunit, offered for download until its batch is retired."""

    batch = models.ForeignKey(Batch, models.PROTECT, null=True, related_name="outputs", db_index=False)
    workunit_name = models.CharField(max_length=MAX_WORKUNIT_NAME_CHARS)
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
