"""Validated credit's tables: apps and their versions, hosts' statistics, workunits and results, and what was granted.

States have BOINC's numbers, so that people who know its database read ours. What a claim and a grant were made of is
kept in columns of the result, by the names of ``engine.explanation``. A quantity that is undefined is NULL, never 0.
"""

from __future__ import annotations

from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models import CheckConstraint, F, Q
from django.utils import timezone

from portal.models import Host, User

MAX_FLOPS_COUNT = 1e25
"""More FLOPs than a job may be estimated or bounded at: 3 million years at 100 GFLOPS."""
MAX_CREDIT = 1e15
MAX_RESULTS_PER_WORKUNIT = 100

SAFE_NAME = RegexValidator(r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", "Letters, digits, _ . and - only, not first.")


class ProcessorType(models.TextChoices):
    """What a version computes on, by BOINC's names; never guessed from a plan class."""

    CPU = "CPU", "CPU"
    NVIDIA = "NVIDIA", "NVIDIA GPU"
    ATI = "ATI", "AMD GPU"
    INTEL = "intel_gpu", "Intel GPU"
    APPLE = "apple_gpu", "Apple GPU"


class CreditSystem(models.TextChoices):
    CREDITNEW = "creditnew", "CreditNew: peak FLOPS, normalised over versions and computers"
    PEAK_FLOPS = "peak_flops", "benchmark × CPU time"
    ACTUAL_FLOPS = "actual_flops", "FLOPs counted by the app"
    FIXED = "fixed", "a fixed amount"


class RuleSet(models.TextChoices):
    PUBLISHED = "published", "as published"
    DEPLOYED = "deployed", "as BOINC's own server computes"


class Comparison(models.TextChoices):
    BITWISE = "bitwise", "equal to the bit"
    TOLERANCE = "tolerance", "numbers equal within a tolerance"
    CUSTOM = "custom", "a Python function"


class ReplicaRule(models.TextChoices):
    MEAN = "mean", "the mean of the replicas' claims"
    MINIMUM = "minimum", "the smallest of the replicas' claims"


class VersionAverage(models.TextChoices):
    MEAN = "mean", "the running average over its jobs"
    MEDIAN = "median", "the median of its computers' averages"


def _limit(name: str, low: float, high: float, text: str) -> models.FloatField[float | None, float | None]:
    return models.FloatField(
        name,
        null=True,
        blank=True,
        validators=[MinValueValidator(low), MaxValueValidator(high)],
        help_text=f"{text} Empty: as the rule set says. From {low:g} to {high:g}.",
    )


def _count(name: str, low: int, high: int, text: str) -> models.PositiveIntegerField[int | None, int | None]:
    return models.PositiveIntegerField(
        name,
        null=True,
        blank=True,
        validators=[MinValueValidator(low), MaxValueValidator(high)],
        help_text=f"{text} Empty: as the rule set says. From {low} to {high}.",
    )


class Platform(models.Model):
    """An operating system and processor family, such as x86_64-pc-linux-gnu."""

    name = models.CharField(max_length=64, unique=True, validators=[SAFE_NAME])
    user_friendly_name = models.CharField(max_length=100, blank=True)
    is_deprecated = models.BooleanField(default=False)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.user_friendly_name or self.name


class App(models.Model):
    """An application of this project: what its jobs are, how their outputs are compared, and how credit is granted."""

    name = models.CharField("short name", max_length=64, unique=True, validators=[SAFE_NAME])
    user_friendly_name = models.CharField("name", max_length=100)
    description = models.TextField(blank=True)
    is_deprecated = models.BooleanField("no more jobs", default=False)
    is_non_cpu_intensive = models.BooleanField("uses hardly any processor time", default=False)
    weight = models.FloatField(
        default=1,
        validators=[MinValueValidator(0), MaxValueValidator(1e6)],
        help_text="Its part of the jobs sent, relative to the other apps'.",
    )

    credit_system = models.CharField(max_length=16, choices=CreditSystem, default=CreditSystem.CREDITNEW)
    rule_set = models.CharField(max_length=16, choices=RuleSet, default=RuleSet.PUBLISHED)
    host_scale_check = models.BooleanField(
        default=False,
        help_text="Computers on probation get no more than their raw claim: against picking jobs to be credited for.",
    )
    max_granted_credit = _limit("most credit for one job", 1e-6, MAX_CREDIT, "Grants are cut to it.")
    fixed_credit = models.FloatField(
        "fixed credit per job", null=True, blank=True, validators=[MinValueValidator(0), MaxValueValidator(MAX_CREDIT)]
    )
    fixed_credit_per_flop = models.FloatField(
        "fixed credit per FLOP estimated",
        null=True,
        blank=True,
        validators=[MinValueValidator(0), MaxValueValidator(1)],
    )
    actual_flops_scale = models.FloatField(
        "factor on counted FLOPs", default=1, validators=[MinValueValidator(1e-6), MaxValueValidator(1e6)]
    )
    benchmark_scale = models.FloatField(
        "factor on benchmark × CPU time", default=1, validators=[MinValueValidator(1e-6), MaxValueValidator(1e6)]
    )
    replica_rule = models.CharField(max_length=8, choices=ReplicaRule, default=ReplicaRule.MEAN)
    version_average = models.CharField(max_length=8, choices=VersionAverage, default=VersionAverage.MEAN)
    host_avg_samples = _count("samples averaged evenly, hosts", 1, 10_000, "N of a host's averages.")
    host_avg_weight = _limit("weight of later samples, hosts", 1e-6, 1, "A of a host's averages.")
    host_avg_limit = _limit("limit of a sample, hosts", 1, 1e6, "X: a sample counts at most X times the average.")
    version_avg_samples = _count("samples averaged evenly, versions", 1, 1_000_000, "N of a version's average.")
    version_avg_weight = _limit("weight of later samples, versions", 1e-6, 1, "A of a version's average.")
    version_avg_limit = _limit("limit of a sample, versions", 1, 1e6, "X of a version's average.")
    min_host_samples = _count("samples before a host is scaled", 1, 10_000, "The host's sample threshold.")
    min_version_samples = _count("samples before a version is scaled", 1, 1_000_000, "The version's sample threshold.")
    max_host_scale = _limit("largest host factor", 1, 1e6, "The cap on the factor for a host.")
    # State, renewed by the feeder.
    min_avg_pfc = models.FloatField("least average of normalised PFC", null=True, blank=True, editable=False)

    comparison = models.CharField(max_length=16, choices=Comparison, default=Comparison.BITWISE)
    comparison_tolerance = models.FloatField(
        "relative tolerance", default=1e-5, validators=[MinValueValidator(0), MaxValueValidator(1)]
    )
    comparison_absolute_tolerance = models.FloatField(
        "absolute tolerance", default=0, validators=[MinValueValidator(0), MaxValueValidator(1e300)]
    )
    comparison_function = models.CharField("dotted path of the function", max_length=200, blank=True)
    assimilation_function = models.CharField(
        "what takes validated outputs",
        max_length=200,
        blank=True,
        help_text="Dotted path of a Python function; empty: outputs are stored and offered for download.",
    )
    trickle_function = models.CharField("what takes trickle-up messages", max_length=200, blank=True)

    max_jobs_per_day_init = models.PositiveIntegerField(
        "jobs a day, per instance, of a new computer",
        default=100,
        validators=[MinValueValidator(1), MaxValueValidator(100_000)],
    )
    adaptive_replication = models.BooleanField(
        "single results to reliable computers", default=False, help_text="Others' jobs are replicated all the same."
    )
    one_result_per_user = models.BooleanField("one result of a workunit per volunteer", default=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["name"]
        constraints = [
            CheckConstraint(
                condition=Q(min_avg_pfc__isnull=True) | Q(min_avg_pfc__gt=0, min_avg_pfc__lt=1e30),
                name="app_min_avg_pfc_positive",
            ),
            CheckConstraint(condition=Q(weight__gte=0, weight__lte=1e6), name="app_weight_range"),
            CheckConstraint(
                condition=Q(max_granted_credit__isnull=True)
                | Q(max_granted_credit__gt=0, max_granted_credit__lte=MAX_CREDIT),
                name="app_max_granted_credit_range",
            ),
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
        ]

    def __str__(self) -> str:
        return self.user_friendly_name


class AppVersion(models.Model):
    """A released program of an app for one platform and plan class, with the statistics that normalise its credit."""

    app = models.ForeignKey(App, models.CASCADE, related_name="versions", db_index=False)
    platform = models.ForeignKey(Platform, models.PROTECT, related_name="versions")
    version_num = models.PositiveIntegerField("version", validators=[MaxValueValidator(100_000_000)])
    plan_class = models.CharField(max_length=64, blank=True)
    processor_type = models.CharField(max_length=16, choices=ProcessorType, default=ProcessorType.CPU)
    avg_ncpus = models.FloatField(
        "processors used", default=1, validators=[MinValueValidator(0), MaxValueValidator(1024)]
    )
    gpu_usage = models.FloatField(
        "GPUs used", default=0, validators=[MinValueValidator(0), MaxValueValidator(64)], help_text="May be a fraction."
    )
    min_gpu_ram_bytes = models.BigIntegerField("least GPU memory (bytes)", default=0)
    is_deprecated = models.BooleanField(default=False)
    cross_project_scale = models.FloatField(
        "cross-project factor",
        null=True,
        blank=True,
        validators=[MinValueValidator(1e-6), MaxValueValidator(1e6)],
        help_text="S(V) for apps that have GPU versions only; it wins over what is computed here.",
    )
    # State: samples by the validator, the factor by the feeder.
    pfc_n = models.BigIntegerField("samples", default=0, editable=False)
    pfc_avg = models.FloatField("average of PFC / estimate", null=True, blank=True, editable=False)
    pfc_scale = models.FloatField("factor", null=True, blank=True, editable=False)
    expavg_credit = models.FloatField("recent average credit per day", default=0, editable=False)
    expavg_at = models.DateTimeField(null=True, blank=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["app", "platform", "plan_class", "-version_num"]
        constraints = [
            models.UniqueConstraint(
                fields=["app", "platform", "plan_class", "version_num"], name="appversion_app_platform_class_num"
            ),
            CheckConstraint(condition=Q(pfc_n__gte=0), name="appversion_pfc_n_range"),
            CheckConstraint(
                condition=Q(pfc_avg__isnull=True) | Q(pfc_avg__gte=0, pfc_avg__lt=1e30), name="appversion_pfc_avg_range"
            ),
            CheckConstraint(
                condition=Q(pfc_scale__isnull=True) | Q(pfc_scale__gt=0, pfc_scale__lt=1e30),
                name="appversion_pfc_scale_range",
            ),
            CheckConstraint(
                condition=Q(expavg_credit__gte=0, expavg_credit__lt=1e30), name="appversion_expavg_credit_range"
            ),
            CheckConstraint(
                condition=Q(processor_type=ProcessorType.CPU, gpu_usage=0)
                | (~Q(processor_type=ProcessorType.CPU) & Q(gpu_usage__gt=0)),
                name="appversion_gpu_usage_fits_type",
            ),
        ]

    def __str__(self) -> str:
        plan_class = f" ({self.plan_class})" if self.plan_class else ""
        return f"{self.app} {self.version_num / 100:.2f}{plan_class} {self.platform.name}"


class HostAppVersion(models.Model):
    """What is known of a version on a host, or of an app on a host's own programs (anonymous platform) of a type.

    Written by the scheduler (jobs of the day, probation at sending), the transitioner (time-outs) and the validator
    (statistics, validity): each its own columns only.
    """

    host = models.ForeignKey(Host, models.CASCADE, related_name="app_versions", db_index=False)
    app = models.ForeignKey(App, models.CASCADE, db_index=False)
    # NULL: anonymous platform, and then processor_type says which of its records it is
    app_version = models.ForeignKey(AppVersion, models.CASCADE, null=True, blank=True, db_index=False)
    processor_type = models.CharField(max_length=16, choices=ProcessorType, default=ProcessorType.CPU)

    pfc_n = models.BigIntegerField(default=0)
    pfc_avg = models.FloatField("average of PFC / estimate", null=True)
    et_n = models.BigIntegerField(default=0)
    et_avg = models.FloatField("average of elapsed secs / FLOPs estimated", null=True)
    et_var = models.FloatField(null=True)
    et_q = models.FloatField(default=0)
    turnaround_n = models.BigIntegerField(default=0)
    turnaround_avg = models.FloatField("average turnaround (s)", null=True)
    turnaround_var = models.FloatField(null=True)
    turnaround_q = models.FloatField(default=0)
    consecutive_valid = models.PositiveIntegerField(default=0)
    scale_probation = models.BooleanField(default=True)
    host_scale_at = models.DateTimeField("end of probation's first delay bound", null=True)
    error_rate = models.FloatField(default=0.1)
    max_jobs_per_day = models.PositiveIntegerField(default=0)  # 0: not set yet; the scheduler knows the instances
    n_jobs_today = models.PositiveIntegerField(default=0)
    jobs_day = models.DateField("day that n_jobs_today counts", null=True)

    class Meta:
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
        ]
        indexes = [
            models.Index(fields=["app_version"], name="hostappversion_version"),
            # All of a computer's, at each of its scheduler requests: the unique ones above know a part each.
            models.Index(fields=["host"], name="hostappversion_host"),
        ]

    def __str__(self) -> str:
        return f"{self.host} · {self.app_version or self.app}"


class Batch(models.Model):
    """Workunits that were submitted together, to be followed and fetched together."""

    app = models.ForeignKey(App, models.PROTECT, related_name="batches")
    owner = models.ForeignKey(User, models.SET_NULL, null=True, blank=True, related_name="batches")
    name = models.CharField(max_length=100)
    # What a client of ours gives to make a repeated submission harmless
    request_id = models.CharField(max_length=64, null=True, blank=True, unique=True)
    nworkunits = models.PositiveIntegerField("workunits", default=0)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    cancelled_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return self.name


class AssimilateState(models.IntegerChoices):
    INIT = 0, "not decided"
    READY = 1, "waits to be assimilated"
    DONE = 2, "assimilated"


class FileDeleteState(models.IntegerChoices):
    INIT = 0, "needed"
    READY = 1, "may be deleted"
    DONE = 2, "deleted"
    ERROR = 3, "could not be deleted"


class WorkunitError(models.IntegerChoices):
    """Why a workunit ended without a canonical result; bits of ``Workunit.error_mask``."""

    COULD_NOT_SEND = 1, "could not be sent"
    TOO_MANY_ERROR_RESULTS = 2, "too many errors"
    TOO_MANY_SUCCESS_RESULTS = 4, "too many results without agreement"
    TOO_MANY_TOTAL_RESULTS = 8, "too many results"
    CANCELLED = 16, "cancelled"


class Workunit(models.Model):
    """A piece of work: its sizes, inputs and bounds, how often it is replicated, and how it ended."""

    app = models.ForeignKey(App, models.PROTECT, related_name="workunits", db_index=False)
    batch = models.ForeignKey(Batch, models.PROTECT, null=True, blank=True, related_name="workunits", db_index=False)
    name = models.CharField(max_length=128, validators=[SAFE_NAME])
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    priority = models.SmallIntegerField(default=0)
    fpops_est = models.FloatField("FLOPs estimated")
    fpops_bound = models.FloatField("most FLOPs")
    memory_bound_bytes = models.BigIntegerField(default=128 * 1024 * 1024)
    disk_bound_bytes = models.BigIntegerField(default=128 * 1024 * 1024)
    delay_bound_secs = models.PositiveIntegerField(default=7 * 86400)
    min_quorum = models.PositiveSmallIntegerField(default=2)
    target_nresults = models.PositiveSmallIntegerField(default=2)
    max_error_results = models.PositiveSmallIntegerField(default=3)
    max_total_results = models.PositiveSmallIntegerField(default=10)
    max_success_results = models.PositiveSmallIntegerField(default=6)
    command_line = models.CharField(max_length=2000, blank=True)
    # [{"name", "open_name", "nbytes", "md5"}, …]: physical names of files in store
    input_files = models.JSONField(default=list, blank=True)
    # [{"open_name", "max_nbytes", "optional"}, …]: the n-th is uploaded as <result name>_<n>
    output_files = models.JSONField(default=list, blank=True)

    need_validate = models.BooleanField(default=False)
    # When outputs could not be compared: why, and when it is tried again
    validate_fault = models.CharField(max_length=500, blank=True, db_default="")
    validate_after = models.DateTimeField(null=True, blank=True)
    transition_at = models.DateTimeField("when the transitioner looks at it", null=True, blank=True)
    # Without a constraint in the database: checking it would cost the validator a fifth of what it writes. It sets only
    # results that it has read with this workunit locked, and check_credit looks at all of them.
    canonical_result = models.ForeignKey(
        "Result", models.SET_NULL, null=True, blank=True, related_name="+", db_index=False, db_constraint=False
    )
    canonical_credit = models.FloatField(null=True, blank=True)
    error_mask = models.PositiveSmallIntegerField(default=0)
    assimilate_state = models.PositiveSmallIntegerField(choices=AssimilateState, default=AssimilateState.INIT)
    file_delete_state = models.PositiveSmallIntegerField(choices=FileDeleteState, default=FileDeleteState.INIT)
    assimilated_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            # Not unique=True: that would bring a second index, for LIKE, to be kept up to date.
            models.UniqueConstraint(fields=["name"], name="workunit_name"),
            CheckConstraint(
                condition=Q(fpops_est__gte=1, fpops_est__lt=MAX_FLOPS_COUNT)
                & Q(fpops_bound__gte=F("fpops_est"), fpops_bound__lt=MAX_FLOPS_COUNT),
                name="workunit_fpops_range",
            ),
            CheckConstraint(
                condition=Q(min_quorum__gte=1, target_nresults__gte=F("min_quorum"))
                & Q(max_total_results__gte=F("target_nresults"), max_total_results__lte=MAX_RESULTS_PER_WORKUNIT)
                & Q(max_success_results__gte=F("min_quorum"), max_error_results__gte=1),
                name="workunit_counts_of_results",
            ),
            CheckConstraint(
                condition=Q(delay_bound_secs__gte=1, delay_bound_secs__lte=10 * 366 * 86400),
                name="workunit_delay_bound_range",
            ),
            CheckConstraint(
                condition=Q(memory_bound_bytes__gte=0, disk_bound_bytes__gte=0), name="workunit_bounds_not_negative"
            ),
            CheckConstraint(
                condition=Q(canonical_credit__isnull=True)
                | Q(canonical_credit__gte=0, canonical_credit__lte=MAX_CREDIT),
                name="workunit_canonical_credit_range",
            ),
            CheckConstraint(
                condition=Q(assimilate_state=AssimilateState.INIT)
                | Q(canonical_result__isnull=False)
                | Q(error_mask__gt=0),
                name="workunit_ends_with_result_or_reason",
            ),
        ]
        indexes = [
            models.Index(fields=["app", "id"], condition=Q(need_validate=True), name="workunit_to_validate"),
            models.Index(
                fields=["transition_at"], condition=Q(transition_at__isnull=False), name="workunit_to_transition"
            ),
            models.Index(
                fields=["app", "id"],
                condition=Q(assimilate_state=AssimilateState.READY),
                name="workunit_to_assimilate",
            ),
            models.Index(
                fields=["id"], condition=Q(file_delete_state=FileDeleteState.READY), name="workunit_to_delete_files"
            ),
            models.Index(
                fields=["assimilated_at"], condition=Q(file_delete_state=FileDeleteState.DONE), name="workunit_to_purge"
            ),
            models.Index(fields=["batch", "id"], condition=Q(batch__isnull=False), name="workunit_batch"),
            models.Index(fields=["app", "-id"], name="workunit_app"),
        ]

    def __str__(self) -> str:
        return self.name


class ServerState(models.IntegerChoices):
    UNSENT = 2, "waits to be sent"
    IN_PROGRESS = 4, "in progress"
    OVER = 5, "over"


class Outcome(models.IntegerChoices):
    INIT = 0, "open"
    SUCCESS = 1, "completed"
    COULD_NOT_SEND = 2, "could not be sent"
    CLIENT_ERROR = 3, "error while computing"
    NO_REPLY = 4, "no reply before the deadline"
    DIDNT_NEED = 5, "not needed any more"
    VALIDATE_ERROR = 6, "output could not be checked"
    CLIENT_DETACHED = 7, "abandoned"


class ValidateState(models.IntegerChoices):
    INIT = 0, "not checked yet"
    VALID = 1, "valid"
    INVALID = 2, "invalid"
    NO_CHECK = 3, "not checked"
    INCONCLUSIVE = 4, "waits for a second opinion"
    TOO_LATE = 5, "too late"


class Result(models.Model):
    """One replica of a workunit: on which computer, what it reported, and why it was granted what it was."""

    workunit = models.ForeignKey(Workunit, models.CASCADE, related_name="results", db_index=False)
    app = models.ForeignKey(App, models.PROTECT, related_name="+", db_index=False)
    name = models.CharField(max_length=140)
    priority = models.SmallIntegerField(default=0)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    server_state = models.PositiveSmallIntegerField(choices=ServerState, default=ServerState.UNSENT)
    outcome = models.PositiveSmallIntegerField(choices=Outcome, default=Outcome.INIT)
    validate_state = models.PositiveSmallIntegerField(choices=ValidateState, default=ValidateState.INIT)
    file_delete_state = models.PositiveSmallIntegerField(choices=FileDeleteState, default=FileDeleteState.INIT)

    user = models.ForeignKey(User, models.SET_NULL, null=True, blank=True, related_name="results", db_index=False)
    host = models.ForeignKey(Host, models.SET_NULL, null=True, blank=True, related_name="results", db_index=False)
    # NULL once it is sent: anonymous platform
    app_version = models.ForeignKey(AppVersion, models.SET_NULL, null=True, blank=True, db_index=False)
    processor_type = models.CharField(max_length=16, choices=ProcessorType, default=ProcessorType.CPU)
    peak_flops = models.FloatField("peak FLOPS of the devices used", null=True, blank=True)
    projected_flops = models.FloatField("FLOPS that its run time was estimated from", null=True, blank=True)
    sent_at = models.DateTimeField(null=True, blank=True)
    deadline_at = models.DateTimeField(null=True, blank=True)

    received_at = models.DateTimeField(null=True, blank=True)
    client_state = models.SmallIntegerField(null=True, blank=True)
    exit_status = models.IntegerField(null=True, blank=True)
    elapsed_secs = models.FloatField("run time (s)", null=True, blank=True)
    cpu_secs = models.FloatField("CPU time (s)", null=True, blank=True)
    fpops_cumulative = models.FloatField("FLOPs counted by the app", null=True, blank=True)
    fpops_per_cpu_sec = models.FloatField("FLOPs per CPU second, by the app", null=True, blank=True)
    is_runtime_outlier = models.BooleanField(default=False)
    peak_working_set_bytes = models.BigIntegerField(null=True, blank=True)
    peak_swap_bytes = models.BigIntegerField(null=True, blank=True)
    peak_disk_bytes = models.BigIntegerField(null=True, blank=True)
    stderr_text = models.TextField(blank=True)
    # What was cut or missing in its report, each with the field and the limit
    report_faults = models.JSONField(default=list, blank=True)
    # [{"name", "nbytes", "md5", "path"}, …]: path is that of the default storage
    outputs = models.JSONField(default=list, blank=True)
    # Equal exactly if all outputs are; NULL: none known
    output_digest = models.BinaryField(max_length=16, null=True, blank=True)

    # Partial credit by trickle-up messages: the part of elapsed_secs already credited, and with how much.
    partial_elapsed_secs = models.FloatField(default=0)
    partial_credit = models.FloatField(default=0)

    # The claim and what it was made of (engine.explanation)
    claim_rule = models.SmallIntegerField(null=True, blank=True)
    raw_pfc = models.FloatField(null=True, blank=True)
    claimed_pfc = models.FloatField(null=True, blank=True)
    claimed_credit = models.FloatField(null=True, blank=True)
    is_approximate = models.BooleanField(null=True, blank=True)
    version_scale = models.FloatField(null=True, blank=True)
    host_scale = models.FloatField(null=True, blank=True)
    on_probation = models.BooleanField(null=True, blank=True)
    version_pfc_n = models.BigIntegerField(null=True, blank=True)
    version_pfc_avg = models.FloatField(null=True, blank=True)
    host_pfc_n = models.BigIntegerField(null=True, blank=True)
    host_pfc_avg = models.FloatField(null=True, blank=True)
    min_avg_pfc = models.FloatField(null=True, blank=True)
    grant_rule = models.SmallIntegerField(null=True, blank=True)
    granted_credit = models.FloatField(null=True, blank=True)
    granted_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(fields=["name"], name="result_name"),
            CheckConstraint(condition=Q(server_state__in=ServerState.values), name="result_server_state"),
            CheckConstraint(condition=Q(outcome__in=Outcome.values), name="result_outcome"),
            CheckConstraint(condition=Q(validate_state__in=ValidateState.values), name="result_validate_state"),
            CheckConstraint(
                condition=(Q(server_state=ServerState.OVER) & ~Q(outcome=Outcome.INIT))
                | (~Q(server_state=ServerState.OVER) & Q(outcome=Outcome.INIT)),
                name="result_outcome_when_over",
            ),
            CheckConstraint(
                condition=~Q(server_state=ServerState.UNSENT) | Q(host__isnull=True, user__isnull=True, sent_at=None),
                name="result_unsent_is_nobodys",
            ),
            CheckConstraint(
                condition=~Q(server_state=ServerState.IN_PROGRESS)
                | Q(sent_at__isnull=False, deadline_at__isnull=False),
                name="result_in_progress_was_sent",
            ),
            CheckConstraint(
                condition=~Q(outcome=Outcome.SUCCESS) | Q(received_at__isnull=False), name="result_success_was_received"
            ),
            CheckConstraint(
                condition=Q(validate_state=ValidateState.INIT) | Q(outcome=Outcome.SUCCESS),
                name="result_checked_when_success",
            ),
            CheckConstraint(
                condition=Q(granted_credit__isnull=True) | Q(granted_credit__gte=0, granted_credit__lte=MAX_CREDIT),
                name="result_granted_credit_range",
            ),
            CheckConstraint(
                condition=Q(partial_credit__gte=0, partial_credit__lte=MAX_CREDIT, partial_elapsed_secs__gte=0),
                name="result_partial_credit_range",
            ),
        ]
        indexes = [
            models.Index(fields=["workunit"], name="result_workunit"),
            # All ascending, so that one row comparison finds a place in the queue (scheduler/statements.py).
            models.Index(
                F("app"), F("priority") * -1, F("id"), condition=Q(server_state=ServerState.UNSENT), name="result_queue"
            ),
            models.Index(fields=["host"], condition=Q(server_state=ServerState.IN_PROGRESS), name="result_in_progress"),
            models.Index(
                fields=["deadline_at"], condition=Q(server_state=ServerState.IN_PROGRESS), name="result_deadline"
            ),
            models.Index(fields=["user", "-id"], condition=Q(user__isnull=False), name="result_user"),
            models.Index(fields=["host", "-id"], condition=Q(host__isnull=False), name="result_host"),
        ]

    def __str__(self) -> str:
        return self.name


class UserCredit(models.Model):
    """Credit granted to a volunteer, in sum and lately (half-life seven days, in credits a day)."""

    user = models.OneToOneField(User, models.CASCADE, primary_key=True, related_name="credit")
    total_credit = models.FloatField(default=0)
    expavg_credit = models.FloatField(default=0)
    expavg_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            CheckConstraint(condition=Q(total_credit__gte=0, total_credit__lt=1e30), name="usercredit_total_range")
        ]

    def __str__(self) -> str:
        return f"{self.user}: {self.total_credit:.0f}"


class HostCredit(models.Model):
    """The same for a computer."""

    host = models.OneToOneField(Host, models.CASCADE, primary_key=True, related_name="credit")
    total_credit = models.FloatField(default=0)
    expavg_credit = models.FloatField(default=0)
    expavg_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            CheckConstraint(condition=Q(total_credit__gte=0, total_credit__lt=1e30), name="hostcredit_total_range")
        ]

    def __str__(self) -> str:
        return f"{self.host}: {self.total_credit:.0f}"


class AppSnapshot(models.Model):
    """An app's least average at a feeder pass that moved it."""

    app = models.ForeignKey(App, models.CASCADE, related_name="snapshots", db_index=False)
    taken_at = models.DateTimeField()
    min_avg_pfc = models.FloatField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["app", "taken_at"], name="appsnapshot_app_taken_at")]

    def __str__(self) -> str:
        return f"{self.app} at {self.taken_at:%Y-%m-%d %H:%M}"


class AppVersionSnapshot(models.Model):
    """A version's statistics at a feeder pass since whose forerunner they moved."""

    app_version = models.ForeignKey(AppVersion, models.CASCADE, related_name="snapshots", db_index=False)
    taken_at = models.DateTimeField()
    pfc_n = models.BigIntegerField()
    pfc_avg = models.FloatField(null=True)
    pfc_scale = models.FloatField(null=True)
    expavg_credit = models.FloatField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["app_version", "taken_at"], name="appversionsnapshot_version_taken_at")
        ]

    def __str__(self) -> str:
        return f"{self.app_version} at {self.taken_at:%Y-%m-%d %H:%M}"
