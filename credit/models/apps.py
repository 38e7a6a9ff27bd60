"""Apps and their settings."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from django.contrib.postgres.fields import ArrayField
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import CheckConstraint, Q
from django.utils import timezone
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from credit.engine.facts import CreditSystem, ReplicaRule
from credit.engine.rules import LIMITS, MAX_CREDIT, MAX_STATISTIC, RuleSet
from credit.models.common import SAFE_NAME, one_of, within

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


class Comparison(models.TextChoices):
    """How two outputs are compared."""

    BITWISE = "bitwise", _("identical bit by bit")
    TOLERANCE = "tolerance", _("numbers equal within a tolerance")
    CUSTOM = "custom", _("a function or a script")


class HomogeneousRedundancy(models.TextChoices):
    """Which computers may confirm each other's results; `scheduler.engine.hr_classes` defines the classes."""

    OFF = "off", _("no: all computers")
    COARSE = "coarse", _("same operating system and kind of processor")
    FINE = "fine", _("also the same maker of processor and the same vector instructions")


class VersionAverage(models.TextChoices):
    """The source of a version's average of PFC."""

    MEAN = "mean", _("the running average over its jobs")
    MEDIAN = "median", _("the median of its computers’ averages")


CREDIT_SYSTEMS: Final = {
    CreditSystem.CREDITNEW: _("CreditNew: peak FLOPS, normalised across versions and computers"),
    CreditSystem.PEAK_FLOPS: _("benchmark × CPU time"),
    CreditSystem.ACTUAL_FLOPS: _("FLOPs counted by the app"),
    CreditSystem.FIXED: _("a fixed amount"),
    CreditSystem.GIVEN: _("an amount given with each job"),
    CreditSystem.RUN_TIME: _("run time × peak FLOPS, up to a limit"),
    CreditSystem.ASSIGNED: _("assigned by the function that compares outputs"),
}
RULE_SETS: Final = {rule_set: _(rule_set.label) for rule_set in RuleSet}
REPLICA_RULES: Final = {
    ReplicaRule.MEAN: _("the mean of the replicas’ claims"),
    ReplicaRule.MINIMUM: _("the smallest of the replicas’ claims"),
}


def _in_range(text: StrOrPromise, low: str, high: str) -> StrOrPromise:
    return format_lazy(
        _("{text} If empty, the value of the rule set applies. From {low} to {high}."), text=text, low=low, high=high
    )


def _power(number: float) -> str:
    """Write a limit for people: very large and small numbers as a power of ten."""
    if 1e-3 <= number < 1e6:
        return f"{number:g}"
    return "10" + f"{round(math.log10(number))}".translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _limit(column: str, name: StrOrPromise, text: StrOrPromise) -> models.FloatField[float | None, float | None]:
    low, high = LIMITS[column]
    return models.FloatField(
        name,
        null=True,
        blank=True,
        validators=[MinValueValidator(low), MaxValueValidator(high)],
        help_text=_in_range(text, _power(low), _power(high)),
    )


def _count(column: str, name: StrOrPromise, text: StrOrPromise) -> models.PositiveIntegerField[int | None, int | None]:
    low, high = LIMITS[column]
    return models.PositiveIntegerField(
        name,
        null=True,
        blank=True,
        validators=[MinValueValidator(int(low)), MaxValueValidator(int(high))],
        help_text=_in_range(text, f"{int(low)}", f"{int(high)}"),
    )


JOB_LIMITS: Final = {
    "max_jobs_in_progress": (1, 10_000),
    "max_gpu_jobs_in_progress": (0, 10_000),
    "max_jobs_per_rpc": (1, 500),
}
"""The limits on jobs that an app may set; the ranges are those of the site's settings of the same names."""


def _job_limit(
    column: str, name: StrOrPromise, about: StrOrPromise
) -> models.PositiveIntegerField[int | None, int | None]:
    low, high = JOB_LIMITS[column]
    validators = [MinValueValidator(low), MaxValueValidator(high)]
    return models.PositiveIntegerField(name, null=True, blank=True, validators=validators, help_text=about)


MAX_DEADLINE_SECS: Final = 10 * 366 * 86_400
MAX_SIZE_CLASSES: Final = 10
"""The limit of BOINC's own server."""

_APP_RANGES: Final = {
    "weight": (0, 1e6),
    "fixed_credit": (0, MAX_CREDIT),
    "fixed_credit_per_flop": (0, 1),
    "max_credited_secs": (1, 1e9),
    "actual_flops_scale": (1e-6, 1e6),
    "benchmark_scale": (1e-6, 1e6),
    "comparison_tolerance": (0, 1),
    "comparison_absolute_tolerance": (0, 1e300),
    "max_jobs_per_day_init": (1, 100_000),
    "reliable_turnaround_secs": (60, 1e9),
    "n_size_classes": (1, MAX_SIZE_CLASSES),
    **JOB_LIMITS,
    "deadline_extension_secs": (0, MAX_DEADLINE_SECS),
    "max_extended_secs": (1, MAX_DEADLINE_SECS),
    **LIMITS,
}
# There is no constraint on rule sets: with an unknown name nothing is granted, because the app's passes fail
# (`Rules.of`).
_APP_CHOICES: Final[dict[str, type[StrEnum] | type[models.TextChoices]]] = {
    "credit_system": CreditSystem,
    "comparison": Comparison,
    "replica_rule": ReplicaRule,
    "version_average": VersionAverage,
    "homogeneous_redundancy": HomogeneousRedundancy,
}


class App(models.Model):
    """An application of this project: its jobs, how their outputs are compared, and how credit is granted."""

    name = models.CharField(_("short name"), max_length=64, unique=True, validators=[SAFE_NAME])
    user_friendly_name = models.CharField(_("name"), max_length=100)
    description = models.TextField(_("description"), blank=True)
    is_deprecated = models.BooleanField(
        _("no more jobs"),
        default=False,
        help_text=_(
            "Computers get no more jobs of this app. Within an hour, its unsent jobs end as “could not be sent”."
        ),
    )
    is_non_cpu_intensive = models.BooleanField(
        _("uses hardly any processor time"),
        default=False,
        help_text=_("Its jobs run alongside others, one on each computer."),
    )
    weight = models.FloatField(
        _("weight"),
        default=1,
        validators=[MinValueValidator(0), MaxValueValidator(1e6)],
        help_text=_(
            "The app’s share of the jobs sent, relative to other apps. 0 pauses the app: no jobs are sent, and those "
            "that computers have continue."
        ),
    )

    credit_system = models.CharField(
        _("credit system"),
        max_length=16,
        choices=CREDIT_SYSTEMS,
        default=CreditSystem.CREDITNEW,
        help_text=_(
            "How the credit for a job is calculated. Statistics are kept whatever you choose, so you can change this "
            "at any time."
        ),
    )
    rule_set = models.CharField(
        _("rule set"),
        max_length=16,
        choices=RULE_SETS,
        default=RuleSet.PUBLISHED,
        help_text=_(
            "The credit document leaves loopholes for gaining credit without work. The first set closes them; the "
            "second follows the document exactly. The third, “as BOINC’s own server calculates”, is for projects that "
            "move here and must not see a jump in credit."
        ),
    )
    host_scale_check = models.BooleanField(
        _("apply host-scale probation (host_scale_check)"),
        default=False,
        help_text=_(
            "Guards against computers that pick the jobs that pay best. A computer’s factor is limited to 1 while more "
            "than one in twenty of its recent jobs ended without a valid result, or while too little is known about "
            "it. Works best with two results of each job, or with single results from reliable computers only."
        ),
    )
    max_granted_credit = _limit(
        "max_granted_credit", _("maximum credit for one job"), _("Higher grants are cut to this value.")
    )
    fixed_credit = models.FloatField(
        _("fixed credit per job"),
        null=True,
        blank=True,
        validators=[MinValueValidator(0), MaxValueValidator(MAX_CREDIT)],
        help_text=_(
            "Credit for each job, whatever its size. From 0 to 10¹⁵. If empty, credit depends on the estimated FLOPs."
        ),
    )
    fixed_credit_per_flop = models.FloatField(
        _("fixed credit per estimated FLOP"),
        null=True,
        blank=True,
        validators=[MinValueValidator(0), MaxValueValidator(1)],
        help_text=_(
            "Credit for each estimated FLOP of a job. Not used if a fixed credit per job is given. From 0 to 1. One "
            "day of a 1 GFLOPS processor is worth 200 credits, so one FLOP is worth 2.3\u202f×\u202f10⁻¹²."
        ),
    )
    max_credited_secs = models.FloatField(
        _("longest run time that is credited (s)"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(1e9)],
        help_text=_(
            "Only used for “run time × peak FLOPS, up to a limit”: longer run times count as this one. From 1 to 10⁹."
        ),
    )
    actual_flops_scale = models.FloatField(
        _("factor on counted FLOPs"),
        default=1,
        validators=[MinValueValidator(1e-6), MaxValueValidator(1e6)],
        help_text=_("The FLOPs counted by the app are multiplied by this factor. From 10⁻⁶ to 10⁶."),
    )
    benchmark_scale = models.FloatField(
        _("factor on benchmark × CPU time"),
        default=1,
        validators=[MinValueValidator(1e-6), MaxValueValidator(1e6)],
        help_text=_("Benchmark × CPU time is multiplied by this factor if the app counted no FLOPs. From 10⁻⁶ to 10⁶."),
    )
    replica_rule = models.CharField(
        _("rule for replicas"),
        max_length=8,
        choices=REPLICA_RULES,
        default=ReplicaRule.MEAN,
        help_text=_("The credit granted to all replicas of a job if their claims differ."),
    )
    version_average = models.CharField(
        _("average of a version"),
        max_length=8,
        choices=VersionAverage,
        default=VersionAverage.MEAN,
        help_text=_(
            "Represents a version when computers are compared. The median cannot be moved by a few cheating computers, "
            "but it needs computers with enough jobs each."
        ),
    )
    host_avg_samples = _count("host_avg_samples", _("samples averaged evenly, hosts"), _("N for a host’s averages."))
    host_avg_weight = _limit("host_avg_weight", _("weight of later samples, hosts"), _("A for a host’s averages."))
    host_avg_limit = _limit(
        "host_avg_limit", _("limit of a sample, hosts"), _("X: a sample counts at most X times the average.")
    )
    version_avg_samples = _count(
        "version_avg_samples", _("samples averaged evenly, versions"), _("N for a version’s average.")
    )
    version_avg_weight = _limit(
        "version_avg_weight", _("weight of later samples, versions"), _("A for a version’s average.")
    )
    version_avg_limit = _limit("version_avg_limit", _("limit of a sample, versions"), _("X for a version’s average."))
    min_host_samples = _count(
        "min_host_samples", _("samples before a host is scaled"), _("The host’s sample threshold.")
    )
    min_version_samples = _count(
        "min_version_samples", _("samples before a version is scaled"), _("The version’s sample threshold.")
    )
    max_host_scale = _limit("max_host_scale", _("maximum host factor"), _("The upper limit of a host’s factor."))
    # State, updated by the feeder.
    min_avg_pfc = models.FloatField(_("lowest average of normalised PFC"), null=True, blank=True, editable=False)

    comparison = models.CharField(
        _("comparison of outputs"),
        max_length=16,
        choices=Comparison,
        default=Comparison.BITWISE,
        help_text=_("When the outputs of two replicas count as equal."),
    )
    comparison_tolerance = models.FloatField(
        _("relative tolerance"),
        default=1e-5,
        validators=[MinValueValidator(0), MaxValueValidator(1)],
        help_text=_(
            "Two numbers agree if they differ by at most this fraction of the larger one. From 0 to 1. Only used for "
            "“numbers equal within a tolerance”."
        ),
    )
    comparison_absolute_tolerance = models.FloatField(
        _("absolute tolerance"),
        default=0,
        validators=[MinValueValidator(0), MaxValueValidator(1e300)],
        help_text=_(
            "Two numbers also agree if they differ by at most this amount. Meant for numbers near zero. From 0 to "
            "10³⁰⁰."
        ),
    )
    comparison_function = models.CharField(
        _("function or script that compares"),
        max_length=200,
        blank=True,
        help_text=_(
            "It decides whether two results agree. Only used for “a function or a script”. Functions of Python are "
            "registered in the setting APP_FUNCTIONS; operators add scripts under “Scripts”."
        ),
    )
    assimilation_function = models.CharField(
        _("function that receives validated outputs"),
        max_length=200,
        blank=True,
        help_text=_("Or a script. If there is none, outputs are stored and offered for download."),
    )
    trickle_function = models.CharField(
        _("function that receives trickle-up messages"),
        max_length=200,
        blank=True,
        help_text=_(
            "A registered Python function. If there is none, messages are only kept. "
            "scheduler.rpc.trickles.grant_partial_credit grants credit while a job runs."
        ),
    )

    max_jobs_per_day_init = models.PositiveIntegerField(
        _("initial daily job limit of a computer, per processor"),
        default=100,
        validators=[MinValueValidator(1), MaxValueValidator(100_000)],
        help_text=_(
            "Multiplied by the number of a computer’s processors of the type. A crash lowers the limit by one, a "
            "success doubles it. From 1 to 100\u202f000."
        ),
    )
    max_jobs_in_progress = _job_limit(
        "max_jobs_in_progress",
        _("jobs in progress, per processor"),
        _(
            "Jobs of this app on a computer, for each of its processors. The site’s limit over all apps "
            "(MAX_JOBS_IN_PROGRESS) also applies. From 1 to 10\u202f000. If empty, only the site’s limit applies."
        ),
    )
    max_gpu_jobs_in_progress = _job_limit(
        "max_gpu_jobs_in_progress",
        _("jobs in progress, per GPU"),
        _(
            "The same for each GPU (MAX_GPU_JOBS_IN_PROGRESS). From 0 to 10\u202f000. If empty, only the site’s limit "
            "applies."
        ),
    )
    max_jobs_per_rpc = _job_limit(
        "max_jobs_per_rpc",
        _("jobs per reply"),
        _(
            "Jobs of this app sent to a computer at once. The site’s limit over all apps (MAX_JOBS_PER_RPC) also "
            "applies. From 1 to 500. If empty, only the site’s limit applies."
        ),
    )
    deadline_extension_secs = models.PositiveIntegerField(
        _("deadline extension per trickle-up message (seconds)"),
        default=0,
        db_default=0,
        validators=[MaxValueValidator(MAX_DEADLINE_SECS)],
        help_text=_(
            "With each message, a job’s deadline moves to at least this long from then, and its computer is told. For "
            "jobs that run for months. 0: messages do not extend deadlines."
        ),
    )
    max_extended_secs = models.PositiveIntegerField(
        _("longest time of an extended job (seconds since it was sent)"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(MAX_DEADLINE_SECS)],
        help_text=_("If empty, ten times its first deadline or, if that is more, ten times what a message adds."),
    )
    adaptive_replication = models.BooleanField(
        _("single results from reliable computers"),
        default=False,
        help_text=_("Jobs of other computers are still replicated."),
    )
    min_replication_chance = _limit(
        "min_replication_chance",
        _("minimum chance of a second result"),
        _(
            "For single results. Jobs of a computer with 10 or fewer valid results in a row are always replicated. "
            "After that the chance is 10 divided by their number, but at least this value: nothing else detects a "
            "computer that starts to make up outputs. Usually 0.05."
        ),
    )
    one_result_per_user = models.BooleanField(
        _("one result per volunteer and workunit"),
        default=True,
        help_text=_(
            "Prevents a volunteer’s own results from confirming each other. Switch it off only for tests with few "
            "computers."
        ),
    )
    homogeneous_redundancy = models.CharField(
        _("compare only computers of one class"),
        max_length=8,
        choices=HomogeneousRedundancy,
        default=HomogeneousRedundancy.OFF,
        db_default=HomogeneousRedundancy.OFF.value,
        help_text=_(
            "For programs whose numbers differ a little from one kind of computer to another. All results of a "
            "workunit go to computers of the class that got the first one. Computers whose class is not known get no "
            "jobs of this app."
        ),
    )
    homogeneous_app_version = models.BooleanField(
        _("compare only results of one version"),
        default=False,
        db_default=False,
        help_text=_(
            "All results of a workunit are computed by the version that got the first one. Computers with programs of "
            "their own get no jobs of this app."
        ),
    )
    reliable_turnaround_secs = models.FloatField(
        _("replacements go to computers that report within (s)"),
        null=True,
        blank=True,
        validators=[MinValueValidator(60), MaxValueValidator(1e9)],
        help_text=_(
            "Replacements of failed and late results are first offered to reliable computers: more than ten jobs, the "
            "last ten valid, and reported within this time on average. After an hour all computers get them. If empty, "
            "all get them at once. From 60 to 1e+09."
        ),
    )
    n_size_classes = models.PositiveSmallIntegerField(
        _("size classes of jobs"),
        default=1,
        db_default=1,
        validators=[MinValueValidator(1), MaxValueValidator(MAX_SIZE_CLASSES)],
        help_text=_(
            "For jobs of several sizes: every hour, computers are sorted by measured speed into this many classes of "
            "equal size. A job that names a class, from 0 for the smallest, goes first to computers of that class. "
            "1: jobs have no classes. At most 10."
        ),
    )
    # State, updated by the census: the speeds (FLOPS) at which the classes after the first begin, and the number of
    # computers in each class
    size_limits = ArrayField(models.FloatField(), default=list, db_default=[], editable=False)
    size_nhosts = ArrayField(models.PositiveIntegerField(), default=list, db_default=[], editable=False)
    is_beta = models.BooleanField(
        _("for testers only"),
        default=False,
        db_default=False,
        help_text=_("Only volunteers who agreed to test new versions get its jobs."),
    )
    created_at = models.DateTimeField(_("created"), default=timezone.now, editable=False)

    class Meta:
        verbose_name = _("app")
        verbose_name_plural = _("apps")
        ordering = ["name"]
        constraints = [
            CheckConstraint(
                condition=Q(min_avg_pfc__isnull=True) | Q(min_avg_pfc__gt=0, min_avg_pfc__lt=MAX_STATISTIC),
                name="app_min_avg_pfc_positive",
            ),
            *(within("app", column, low, high) for column, (low, high) in _APP_RANGES.items()),
            *(one_of("app", column, choices) for column, choices in _APP_CHOICES.items()),
            CheckConstraint(
                condition=~Q(comparison=Comparison.CUSTOM) | ~Q(comparison_function=""),
                name="app_custom_comparison_is_named",
            ),
            CheckConstraint(
                condition=~Q(credit_system=CreditSystem.FIXED)
                | Q(fixed_credit__isnull=False)
                | Q(fixed_credit_per_flop__isnull=False),
                name="app_fixed_credit_is_given",
            ),
            CheckConstraint(
                condition=~Q(credit_system=CreditSystem.RUN_TIME) | Q(max_credited_secs__isnull=False),
                name="app_credited_run_time_has_a_limit",
            ),
        ]

    def __str__(self) -> str:
        return self.user_friendly_name

    @property
    def is_paused(self) -> bool:
        """Whether no jobs are sent for now; those that computers have continue."""
        return self.weight <= 0
