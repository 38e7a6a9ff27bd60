"""Submitters' container images: the files that docker_wrapper builds them from."""

from __future__ import annotations

from typing import Any, Final

from django.core.validators import RegexValidator
from django.db import models
from django.db.models import CheckConstraint, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from credit.models import App
from portal.models import User
from scheduler.engine.choice.variants import ANY, ARM, CPU_KINDS, INTEL
from scheduler.models import StoredFile

MAX_NAME_CHARS: Final = 40


class Image(models.Model):
    """An image that jobs of an app run in. Its files belong to its variants."""

    name = models.CharField(
        _("name"),
        max_length=MAX_NAME_CHARS,
        unique=True,
        validators=[RegexValidator(r"^[a-z0-9][a-z0-9_-]*\Z", _("Use a–z, 0–9, _ and -, beginning with a–z or 0–9."))],
    )
    app = models.ForeignKey(App, models.CASCADE, related_name="+", verbose_name=_("app"))
    # NULL: the account is closed; operators may change it
    owner = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+", verbose_name=_("owner"))
    created_at = models.DateTimeField(_("created"), default=timezone.now, editable=False)

    class Meta:
        verbose_name = _("container image")
        verbose_name_plural = _("container images")
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    def program_files(self) -> list[dict[str, Any]]:
        """Return the files in the format of a job's field (docs/how-to/jobs.md)."""
        files = self.files.select_related("file").order_by("plan_class", "cpu", "open_name")
        return [file.described() for file in files]


class ImageFile(models.Model):
    """A file of one variant of an image. Both empty: for all computers that have no more specific variant."""

    class Cpu(models.TextChoices):
        INTEL = INTEL, _("Intel and AMD (x86_64)")
        ARM = ARM, _("ARM (64 bits)")

    image = models.ForeignKey(Image, models.CASCADE, related_name="files", db_index=False)
    plan_class = models.CharField(_("plan class"), max_length=64, blank=True)
    cpu = models.CharField(_("kind of CPU"), max_length=8, choices=Cpu, blank=True)
    open_name = models.CharField(_("name in the job’s folder"), max_length=200)
    file = models.ForeignKey(StoredFile, models.PROTECT, related_name="+")
    is_executable = models.BooleanField(_("executable"), default=False)

    class Meta:
        verbose_name = _("file of a container image")
        verbose_name_plural = _("files of container images")
        constraints = [
            models.UniqueConstraint(fields=["image", "plan_class", "cpu", "open_name"], name="imagefile_once"),
            CheckConstraint(condition=Q(cpu__in=["", *CPU_KINDS]), name="imagefile_cpu"),
        ]

    def __str__(self) -> str:
        return f"{self.image}/{self.open_name}"

    def described(self) -> dict[str, Any]:
        """Return the file as one of a job's files."""
        properties = {"executable": self.is_executable, "plan_class": self.plan_class, "cpu": self.cpu or ANY}
        return {"open_name": self.open_name, "name": self.file.name, **{name: v for name, v in properties.items() if v}}
