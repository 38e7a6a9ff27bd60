"""Platforms, and released versions of apps with their statistics."""

from __future__ import annotations

from typing import Final

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import CheckConstraint, Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from credit.engine.facts import ProcessorType
from credit.engine.rules import MAX_STATISTIC
from credit.models.apps import App
from credit.models.common import SAFE_NAME, has_samples, one_of, within

MAX_GPU_RAM_BYTES: Final = 2**50
MAX_CMDLINE_NBYTES: Final = 255 - len(" --nthreads 1024")
"""The length of an app version's own arguments in a reply: clients read them, and the number of threads that a plan
class adds, into a buffer of 256.
"""
API_VERSION: Final = r"^([0-9]{1,3}(\.[0-9]{1,3}){2})?$"
FILE_PREFIX: Final = r"^([A-Za-z0-9_-]{1,16})?$"
"""The most characters that clients read."""


PROCESSOR_TYPES: Final = {
    ProcessorType.CPU: _("CPU"),
    ProcessorType.NVIDIA: _("NVIDIA GPU"),
    ProcessorType.ATI: _("AMD GPU"),
    ProcessorType.INTEL: _("Intel GPU"),
    ProcessorType.APPLE: _("Apple GPU"),
}
# avg_ncpus and gpu_usage have further constraints that depend on the type of processor.
_VERSION_RANGES: Final = {
    "avg_ncpus": (0, 1024),
    "gpu_usage": (0, 64),
    "min_gpu_ram_bytes": (0, MAX_GPU_RAM_BYTES),
    "cross_project_scale": (1e-6, 1e6),
    "total_credit": (0, MAX_STATISTIC),
}


class Platform(models.Model):
    """An operating system and processor family, such as x86_64-pc-linux-gnu."""

    name = models.CharField(_("name"), max_length=64, unique=True, validators=[SAFE_NAME])
    user_friendly_name = models.CharField(_("name on pages"), max_length=100, blank=True)
    is_deprecated = models.BooleanField(_("withdrawn"), default=False)

    class Meta:
        verbose_name = _("platform")
        verbose_name_plural = _("platforms")
        ordering = ["name"]

    def __str__(self) -> str:
        return self.user_friendly_name or self.name


class AppVersion(models.Model):
    """A released program of an app for one platform and plan class, with the statistics that normalise its credit."""

    app = models.ForeignKey(App, models.CASCADE, related_name="versions", db_index=False, verbose_name=_("app"))
    platform = models.ForeignKey(Platform, models.PROTECT, related_name="versions", verbose_name=_("platform"))
    version_num = models.PositiveIntegerField(_("version"), validators=[MaxValueValidator(100_000_000)])
    plan_class = models.CharField(_("plan class"), max_length=64, blank=True)
    processor_type = models.CharField(
        _("processor type"), max_length=16, choices=PROCESSOR_TYPES, default=ProcessorType.CPU
    )
    avg_ncpus = models.FloatField(
        _("processors used"),
        default=1,
        validators=[MinValueValidator(0), MaxValueValidator(1024)],
        help_text=_(
            "Processors that a job keeps busy on average. Credit is calculated from this. From 0 to 1\u202f024."
        ),
    )
    gpu_usage = models.FloatField(
        _("GPUs used"),
        default=0,
        validators=[MinValueValidator(0), MaxValueValidator(64)],
        help_text=_(
            "GPUs that a job keeps busy; may be a fraction. 0 for a CPU version, otherwise above 0 and at most 64."
        ),
    )
    min_gpu_ram_bytes = models.BigIntegerField(
        _("minimum GPU memory (bytes)"),
        default=0,
        help_text=_("Computers whose GPU has less memory do not get this version. 0 means any amount."),
    )
    # How clients start it (BOINC protocol, job description): the interface that it was built with, and its arguments
    api_version = models.CharField(_("version of the BOINC API"), max_length=11, blank=True, default="")
    cmdline = models.CharField(_("arguments"), max_length=MAX_CMDLINE_NBYTES, blank=True, default="")
    # Major × 10,000 + minor × 100 + release; 0: any
    min_client_version = models.PositiveIntegerField(
        _("minimum version of BOINC"),
        default=0,
        db_default=0,
        validators=[MaxValueValidator(9_999_999)],
        help_text=_("Computers with an older one do not get this version. 71620 is 7.16.20; 0 means any."),
    )
    max_client_version = models.PositiveIntegerField(
        _("maximum version of BOINC"),
        default=0,
        db_default=0,
        validators=[MaxValueValidator(9_999_999)],
        help_text=_("Computers with a newer one do not get this version. 0 means any."),
    )
    is_wrapper = models.BooleanField(_("starts other programs"), default=False, db_default=False)
    needs_network = models.BooleanField(_("needs the network while it runs"), default=False, db_default=False)
    dont_throttle = models.BooleanField(_("is never slowed down"), default=False, db_default=False)
    file_prefix = models.CharField(_("folder of inputs and outputs"), max_length=16, blank=True, default="")
    is_deprecated = models.BooleanField(
        _("withdrawn"),
        default=False,
        help_text=_(
            "The version is no longer sent. It keeps its factor for jobs in progress and for the next version. Under "
            "the rules “exactly as in the credit document” it loses its factor."
        ),
    )
    cross_project_scale = models.FloatField(
        _("cross-project factor"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1e-6), MaxValueValidator(1e6)],
        help_text=_(
            "S(V), for apps that have GPU versions only: the factor that such versions have at other projects. It then "
            "replaces the factor calculated here; if the app has CPU versions, it is not used. “Factor” below is the "
            "one in force. From 10⁻⁶ to 10⁶. If empty, there is none."
        ),
    )
    # State: samples by the validator, the factor by the feeder.
    pfc_n = models.BigIntegerField(_("samples"), default=0, editable=False)
    pfc_avg = models.FloatField(_("average of PFC / estimate"), null=True, blank=True, editable=False)
    pfc_scale = models.FloatField(_("factor"), null=True, blank=True, editable=False)
    # It still counts after it is withdrawn, until there are others to count (engine.normalisation).
    is_counted = models.BooleanField(
        _("counts towards the app’s lowest average"), default=False, db_default=False, editable=False
    )
    is_scale_received = models.BooleanField(
        _("factor comes from other projects"), default=False, db_default=False, editable=False
    )
    # Grants of its results: credit as in volunteers' totals, and the number of results
    total_credit = models.FloatField(_("total credit granted"), default=0, editable=False)
    ngranted = models.BigIntegerField(_("results granted"), default=0, editable=False)
    expavg_credit = models.FloatField(_("recent average credit per day"), default=0, editable=False)
    expavg_at = models.DateTimeField(_("recent average as of"), null=True, blank=True, editable=False)
    created_at = models.DateTimeField(_("created"), default=timezone.now, editable=False)

    class Meta:
        verbose_name = _("app version")
        verbose_name_plural = _("app versions")
        ordering = ["app", "platform", "plan_class", "-version_num"]
        constraints = [
            models.UniqueConstraint(
                fields=["app", "platform", "plan_class", "version_num"], name="appversion_app_platform_class_num"
            ),
            *(within("appversion", name, low, high) for name, (low, high) in _VERSION_RANGES.items()),
            one_of("appversion", "processor_type", ProcessorType),
            CheckConstraint(condition=Q(api_version__regex=API_VERSION), name="appversion_api_version_form"),
            CheckConstraint(condition=Q(file_prefix__regex=FILE_PREFIX), name="appversion_file_prefix_form"),
            CheckConstraint(condition=Q(ngranted__gte=0), name="appversion_ngranted_range"),
            has_samples("appversion", "pfc"),
            CheckConstraint(
                condition=Q(pfc_avg__isnull=True) | Q(pfc_avg__gte=0, pfc_avg__lt=MAX_STATISTIC),
                name="appversion_pfc_avg_range",
            ),
            CheckConstraint(
                condition=Q(pfc_scale__isnull=True) | Q(pfc_scale__gt=0, pfc_scale__lt=MAX_STATISTIC),
                name="appversion_pfc_scale_range",
            ),
            CheckConstraint(
                condition=Q(expavg_credit__gte=0, expavg_credit__lt=MAX_STATISTIC),
                name="appversion_expavg_credit_range",
            ),
            CheckConstraint(
                condition=Q(processor_type=ProcessorType.CPU, gpu_usage=0)
                | (~Q(processor_type=ProcessorType.CPU) & Q(gpu_usage__gt=0)),
                name="appversion_gpu_usage_fits_type",
            ),
            # Its peak FLOPS would be 0, and the scheduler could never send it.
            CheckConstraint(
                condition=Q(avg_ncpus__gt=0) | (~Q(processor_type=ProcessorType.CPU) & Q(avg_ncpus=0)),
                name="appversion_uses_something",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.app} {self.number_label} {self.platform.name}"

    @property
    def number_label(self) -> str:
        """Its number for people, and its plan class: 1.02 (cuda)."""
        return f"{self.version_num / 100:.2f}" + (f" ({self.plan_class})" if self.plan_class else "")
