"""Keys of programs that submit jobs, templates of apps, and staged files."""

from __future__ import annotations

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from credit.models import JOB_NAME, App, Batch
from extras.remote_jobs.wire.job_templates import MAX_TEMPLATE_NBYTES
from portal.models import ApiToken, User
from scheduler.models import StoredFile


class JobsKey(models.Model):
    """Turns a token into an authenticator of remote job submission; such a token has no scope of the REST API.

    The key is stored encrypted beside its hash, bound to its row: programs prove that they have it by MD5s computed
    from it.
    """

    token = models.OneToOneField(ApiToken, models.CASCADE, primary_key=True, related_name="jobs_key")
    sealed_key = models.BinaryField(editable=False)
    # The apps that it may submit jobs for
    apps = models.ManyToManyField(App, related_name="+", verbose_name=_("apps"))

    class Meta:
        verbose_name = _("key for jobs")
        verbose_name_plural = _("keys for jobs")

    def __str__(self) -> str:
        return str(self.token)


class JobTemplate(models.Model):
    """A template file of an app, like those below BOINC's ``templates/``."""

    class Kind(models.TextChoices):
        INPUT = "in", _("input template")
        OUTPUT = "out", _("output template")

    app = models.ForeignKey(App, models.CASCADE, related_name="+", db_index=False, verbose_name=_("app"))
    kind = models.CharField(_("kind"), max_length=3, choices=Kind)
    # As in input_template_filename of a submission; without one, the app's name and _in or _out is meant
    name = models.CharField(_("file name"), max_length=100, validators=[JOB_NAME])
    text = models.TextField(_("template"), max_length=MAX_TEMPLATE_NBYTES)

    class Meta:
        verbose_name = _("job template")
        verbose_name_plural = _("job templates")
        ordering = ["app", "name"]
        constraints = [models.UniqueConstraint(fields=["app", "name"], name="jobtemplate_once")]

    def __str__(self) -> str:
        return self.name


class StagedFile(models.Model):
    """An input file that a program uploaded, alone or with others; it is deleted when no open batch needs it."""

    file = models.OneToOneField(StoredFile, models.CASCADE, primary_key=True, related_name="staged")
    owner = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+")
    # When somebody last sent it, or was told that it is present
    asked_at = models.DateTimeField(default=timezone.now)
    # NULL: with the last of its batches
    delete_at = models.DateTimeField(null=True)
    batches = models.ManyToManyField(Batch, related_name="+")

    class Meta:
        verbose_name = _("staged file")
        verbose_name_plural = _("staged files")

    def __str__(self) -> str:
        return self.file.name
