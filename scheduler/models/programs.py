"""Plan classes, releases that are being prepared and tested, and changes of the key that signs programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models import CheckConstraint, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from credit.models import PROCESSOR_TYPES, SAFE_NAME, AppVersion, ProcessorType
from credit.models.versions import MAX_GPU_RAM_BYTES
from portal.models import User
from scheduler.engine.choice.plan_classes import MAX_PATTERN_CHARS

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

MAX_GPU_FLOPS: Final = 1e18
_RANGES: Final = (
    *("client_version", "driver_version", "compute_capability", "cuda_version", "opencl_version"),
    *("virtualbox_version", "gpu_peak_flops"),
)
"""Properties that a plan class limits from below and above; 0 means no limit."""


def _version(name: StrOrPromise) -> models.PositiveIntegerField[int, int]:
    """Build a field that limits a version number; 0: none."""
    return models.PositiveIntegerField(name, default=0, db_default=0)


def _flops(name: StrOrPromise) -> models.FloatField[float, float]:
    return models.FloatField(
        name, default=0, db_default=0, validators=[MinValueValidator(0), MaxValueValidator(MAX_GPU_FLOPS)]
    )


def _pattern(name: StrOrPromise) -> models.CharField[str, str]:
    return models.CharField(name, max_length=MAX_PATTERN_CHARS, blank=True, default="", db_default="")


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
    nthreads_cmdline = models.BooleanField(
        _("tell programs their threads (--nthreads)"), default=False, db_default=False
    )
    min_client_version = _version(_("minimum version of BOINC"))
    max_client_version = _version(_("maximum version of BOINC"))
    max_driver_version = _version(_("maximum driver version"))
    max_compute_capability = _version(_("maximum compute capability"))
    min_cuda_version = _version(_("minimum version of CUDA"))
    max_cuda_version = _version(_("maximum version of CUDA"))
    min_opencl_version = _version(_("minimum version of OpenCL"))
    max_opencl_version = _version(_("maximum version of OpenCL"))
    min_gpu_peak_flops = _flops(_("minimum peak FLOPS of a GPU"))
    max_gpu_peak_flops = _flops(_("maximum peak FLOPS of a GPU"))
    needs_double_precision = models.BooleanField(_("needs double precision"), default=False, db_default=False)
    gpu_ram_used_bytes = models.BigIntegerField(
        _("GPU memory used (bytes)"),
        default=0,
        db_default=0,
        validators=[MinValueValidator(0), MaxValueValidator(MAX_GPU_RAM_BYTES)],
    )
    cpu_share = models.FloatField(
        _("share of the FLOPs that the CPU computes"),
        default=0,
        db_default=0,
        validators=[MinValueValidator(0), MaxValueValidator(1)],
    )
    os_pattern = _pattern(_("pattern of the system’s version"))
    cpu_vendor_pattern = _pattern(_("pattern of the processor’s vendor"))
    cpu_model_pattern = _pattern(_("pattern of the processor’s model"))
    gpu_model_pattern = _pattern(_("pattern of the GPU’s model"))
    min_os_version = _version(_("minimum version of the system"))
    max_os_version = _version(_("maximum version of the system"))
    min_libc_version = _version(_("minimum version of the C library"))
    needs_virtualbox = models.BooleanField(_("needs VirtualBox"), default=False, db_default=False)
    needs_vm_acceleration = models.BooleanField(_("needs VT-x or AMD-V"), default=False, db_default=False)
    min_virtualbox_version = _version(_("minimum version of VirtualBox"))
    max_virtualbox_version = _version(_("maximum version of VirtualBox"))
    excluded_virtualbox_versions = models.CharField(
        _("excluded versions of VirtualBox"),
        max_length=200,
        blank=True,
        default="",
        db_default="",
        validators=[RegexValidator(r"^[0-9]{1,9}( [0-9]{1,9})*\Z")],
    )
    avg_ncpus = models.FloatField(
        _("processors used"), default=1, validators=[MinValueValidator(0), MaxValueValidator(1024)]
    )
    gpu_usage = models.FloatField(
        _("GPUs used"),
        default=0,
        validators=[MinValueValidator(0), MaxValueValidator(64)],
        help_text=_("For a GPU type, 0 means the value of the version."),
    )
    projected_flops_scale = models.FloatField(
        _("factor on the assumed speed"),
        default=1,
        db_default=1,
        validators=[MinValueValidator(0.01), MaxValueValidator(100)],
        help_text=_(
            "The speed of a version is assumed to be its devices’ speed times this factor until run times have been "
            "measured. From 0.01 to 100."
        ),
    )

    class Meta:
        verbose_name = _("plan class")
        ordering = ["name"]
        verbose_name_plural = _("plan classes")
        constraints = [
            # Without devices the peak FLOPS would be 0, and its versions would never be sent.
            CheckConstraint(
                condition=Q(processor_type=ProcessorType.CPU, gpu_usage=0, avg_ncpus__gt=0)
                | (~Q(processor_type=ProcessorType.CPU) & Q(gpu_usage__gte=0, avg_ncpus__gte=0)),
                name="planclass_uses_something",
            ),
            CheckConstraint(condition=Q(max_ncpus__gte=1), name="planclass_max_ncpus"),
            CheckConstraint(
                condition=Q(projected_flops_scale__gte=0.01, projected_flops_scale__lte=100),
                name="planclass_flops_scale",
            ),
            CheckConstraint(
                condition=Q(cpu_share__gte=0, cpu_share__lte=1, gpu_ram_used_bytes__gte=0, min_gpu_peak_flops__gte=0)
                & Q(
                    max_gpu_peak_flops__gte=0,
                    max_gpu_peak_flops__lte=MAX_GPU_FLOPS,
                    min_gpu_peak_flops__lte=MAX_GPU_FLOPS,
                ),
                name="planclass_gpu_ranges",
            ),
            # The catalogue reads them as numbers, at every RPC.
            CheckConstraint(
                condition=Q(excluded_virtualbox_versions__regex=r"^([0-9]{1,9}( [0-9]{1,9})*)?$"),
                name="planclass_excluded_form",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        for name in _RANGES:
            least, most = getattr(self, f"min_{name}") or 0, getattr(self, f"max_{name}") or 0
            if least > most > 0:
                raise ValidationError(
                    {f"max_{name}": _("Less than the minimum: no computer would get these versions.")}
                )
        # Jobs were checked according to whether their app runs in containers (scheduler.programs.containers).
        others = PlanClass.objects.filter(pk=self.pk).exclude(needs_docker=self.needs_docker)
        if others.exists() and AppVersion.objects.filter(plan_class=self.name).exists():
            raise ValidationError({"needs_docker": _("Versions of this class were released. Make another class.")})


class ReleaseDraft(models.Model):
    """A version of an app that is being prepared in the browser. Nothing of it is released before it is signed.

    ``fields``: those of version.toml (docs/how-to/jobs.md), except the files.
    """

    creator = models.ForeignKey(
        User, models.SET_NULL, null=True, blank=True, related_name="+", db_index=False, verbose_name=_("creator")
    )
    fields = models.JSONField(_("fields"), default=dict)
    created_at = models.DateTimeField(_("created"), default=timezone.now, editable=False)
    # The version created from it; its files are then no longer here
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
    """A version under test: only these people's computers get it. A version that was sent to all has no such row."""

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
    """A volunteer who agreed to get versions that are still being tested."""

    user = models.OneToOneField(User, models.CASCADE, primary_key=True, related_name="beta_tester")
    agreed_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        verbose_name = _("tester")
        verbose_name_plural = _("testers")

    def __str__(self) -> str:
        return str(self.user)


class KeyChange(models.Model):
    """A change of the code-signing key: clients with the old key trust the new one, because the old one signed it.

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
