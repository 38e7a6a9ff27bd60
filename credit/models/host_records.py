"""Statistics of a version on a computer."""

from __future__ import annotations

from typing import Final

from django.db import models
from django.db.models import CheckConstraint, Q
from django.utils.translation import gettext_lazy as _

from credit.engine.averages import SAMPLE_LIMIT
from credit.engine.facts import ProcessorType
from credit.engine.rules import LIMITS, MAX_STATISTIC
from credit.models.apps import App
from credit.models.common import has_samples, one_of, within
from credit.models.versions import PROCESSOR_TYPES, AppVersion
from portal.models import Host

# Samples are below engine.averages.SAMPLE_LIMIT, and q sums the squares of at most the samples that count evenly.
_HIGHEST: Final = {
    "et_avg": SAMPLE_LIMIT,
    "et_var": SAMPLE_LIMIT**2,
    "et_q": SAMPLE_LIMIT**2 * LIMITS["host_avg_samples"][1],
    "peak_flops": 1e300,
    "turnaround_avg": SAMPLE_LIMIT,
    "turnaround_var": SAMPLE_LIMIT**2,
    "turnaround_q": SAMPLE_LIMIT**2 * LIMITS["host_avg_samples"][1],
}


class HostAppVersion(models.Model):
    """The statistics of a version on a host, or of an app with a host's own programs (anonymous platform) of one type.

    Written by the scheduler (probation at sending, reports), the transitioner (time-outs) and the validator
    (statistics, validity); each writes only its own columns.
    """

    host = models.ForeignKey(
        Host, models.CASCADE, related_name="app_versions", db_index=False, verbose_name=_("computer")
    )
    app = models.ForeignKey(App, models.CASCADE, db_index=False, verbose_name=_("app"))
    # NULL: anonymous platform; then processor_type distinguishes its records
    app_version = models.ForeignKey(
        AppVersion, models.CASCADE, null=True, blank=True, db_index=False, verbose_name=_("app version")
    )
    processor_type = models.CharField(
        _("processor type"), max_length=16, choices=PROCESSOR_TYPES, default=ProcessorType.CPU
    )

    pfc_n = models.BigIntegerField(_("samples"), default=0)
    pfc_avg = models.FloatField(_("average of PFC / estimate"), null=True)
    # earlier samples; by the published rules they raise the factor
    clean_pfc_n = models.BigIntegerField(_("samples of clean times"), default=0, db_default=0)
    clean_pfc_avg = models.FloatField(_("average of clean times"), null=True)
    # before samples_at, and since then: at least a delay bound each
    waiting_pfc_n = models.BigIntegerField(_("samples before"), default=0, db_default=0)
    waiting_pfc_avg = models.FloatField(_("average before"), null=True)
    recent_pfc_n = models.BigIntegerField(_("recent samples"), default=0, db_default=0)
    recent_pfc_avg = models.FloatField(_("recent average"), null=True)
    samples_at = models.DateTimeField(_("recent samples since"), null=True)
    # the peak at which the averages of PFC were measured (credit.engine.peaks)
    peak_flops = models.FloatField(_("peak FLOPS of the samples"), null=True)
    # by how many usual jobs the claims have exceeded those of usual jobs (credit.engine.lead)
    lead_jobs = models.FloatField(_("credit ahead of usual tasks (tasks)"), default=0, db_default=0)
    et_n = models.BigIntegerField(_("samples of run time"), default=0)
    et_avg = models.FloatField(_("average of run time / estimated FLOPs"), null=True)
    et_var = models.FloatField(_("variance of run time"), null=True)
    et_q = models.FloatField(_("sum of squares of run time"), default=0)
    turnaround_n = models.BigIntegerField(_("samples of turnaround"), default=0)
    turnaround_avg = models.FloatField(_("average turnaround (s)"), null=True)
    turnaround_var = models.FloatField(_("variance of turnaround"), null=True)
    turnaround_q = models.FloatField(_("sum of squares of turnaround"), default=0)
    consecutive_valid = models.PositiveIntegerField(_("valid in a row"), default=0)
    scale_probation = models.BooleanField(_("on probation"), default=True)
    host_scale_at = models.DateTimeField(_("end of the first delay bound of probation"), null=True)
    error_rate = models.FloatField(_("error rate"), default=0.1)
    failing_share = models.FloatField(_("share of recent jobs without a valid result"), default=0, db_default=0)
    max_jobs_per_day = models.PositiveIntegerField(
        _("maximum jobs per day"), default=0
    )  # 0: not set yet; the scheduler knows the instances

    class Meta:
        verbose_name = _("version on a computer")
        verbose_name_plural = _("versions on computers")
        constraints = [
            models.UniqueConstraint(
                fields=["host", "app_version"],
                condition=Q(app_version__isnull=False),
                name="hostappversion_host_version",
            ),
            models.UniqueConstraint(
                fields=["host", "app", "processor_type"],
                condition=Q(app_version__isnull=True),
                name="hostappversion_host_app_type",
            ),
            CheckConstraint(condition=Q(error_rate__gte=0, error_rate__lte=1), name="hostappversion_error_rate_range"),
            CheckConstraint(
                condition=Q(pfc_avg__isnull=True) | Q(pfc_avg__gte=0, pfc_avg__lt=1e300),
                name="hostappversion_pfc_avg_range",
            ),
            *(within("hostappversion", name, 0, high) for name, high in _HIGHEST.items()),
            within("hostappversion", "lead_jobs", -MAX_STATISTIC, MAX_STATISTIC),
            has_samples("hostappversion", "pfc", "et", "turnaround"),
            CheckConstraint(
                condition=Q(clean_pfc_avg__isnull=True)
                | Q(clean_pfc_n__gt=0, clean_pfc_avg__gte=0, clean_pfc_avg__lt=1e300),
                name="hostappversion_clean_pfc_range",
            ),
            CheckConstraint(
                condition=Q(waiting_pfc_avg__isnull=True)
                | Q(waiting_pfc_n__gt=0, waiting_pfc_avg__gte=0, waiting_pfc_avg__lt=1e300),
                name="hostappversion_waiting_pfc_range",
            ),
            CheckConstraint(
                condition=Q(failing_share__gte=0, failing_share__lte=1), name="hostappversion_failing_share_range"
            ),
            CheckConstraint(
                condition=Q(recent_pfc_avg__isnull=True)
                | Q(recent_pfc_n__gt=0, recent_pfc_avg__gte=0, recent_pfc_avg__lt=1e300),
                name="hostappversion_recent_pfc_range",
            ),
            one_of("hostappversion", "processor_type", ProcessorType),
        ]
        indexes = [
            models.Index(fields=["app_version"], name="hostappversion_version"),
            # Each scheduler request reads all records of a computer, and each of the unique indexes above contains only
            # some.
            models.Index(fields=["host"], name="hostappversion_host"),
        ]

    def __str__(self) -> str:
        return f"{self.host} · {self.app_version or self.app}"
