"""The engine's input, and the statistics that it updates.

Times are Unix seconds. A number that is unknown (a client sent none) is NaN. ``HostVersionFacts`` and ``VersionFacts``
are changed in place: the caller loads them, lets the engine decide one workunit after another, and writes them back.
Results of one (host, version) share one record.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from datetime import date
from enum import StrEnum
from math import nan
from typing import Final

from credit.engine.averages import Average, AverageWithVariance
from credit.engine.rules import Rules


class CreditSystem(StrEnum):
    """The document's three systems, and projects' own rules (accounting document, "Projects' own rules")."""

    CREDITNEW = "creditnew"
    PEAK_FLOPS = "peak_flops"
    ACTUAL_FLOPS = "actual_flops"
    FIXED = "fixed"
    GIVEN = "given"  # set with each job when it is submitted
    RUN_TIME = "run_time"
    ASSIGNED = "assigned"  # by the project's function that compares outputs


class ReplicaRule(StrEnum):
    """How replicas' claims become a grant in the first two systems."""

    MEAN = "mean"
    MINIMUM = "minimum"


class ProcessorType(StrEnum):
    """The kinds of processor that a version uses, by BOINC's names; never guessed from a plan class."""

    CPU = "CPU"
    NVIDIA = "NVIDIA"
    ATI = "ATI"
    INTEL = "intel_gpu"
    APPLE = "apple_gpu"


@dataclass(slots=True)
class AppFacts:
    """An app's settings, and ``min_avg_pfc`` as the feeder left it (None: not defined yet).

    ``rules`` include the app's own limits. ``target_nresults`` is how many results its workunits usually have; the
    deployed rules ask whether a workunit has fewer. ``pairs``: volunteers whose agreement a third must confirm.
    """

    id: int
    rules: Rules
    min_avg_pfc: float | None = None
    host_scale_check: bool = False
    credit_system: CreditSystem = CreditSystem.CREDITNEW
    replica_rule: ReplicaRule = ReplicaRule.MEAN
    fixed_credit: float | None = None
    fixed_credit_per_flop: float | None = None
    max_credited_secs: float | None = None
    actual_flops_scale: float = 1.0
    benchmark_scale: float = 1.0
    target_nresults: int = 2
    pairs: frozenset[tuple[int, int]] = frozenset()

    @property
    def usual_sample(self) -> float:
        """The PFC / fpops_est of a job that claims the default; 0 if the rules do not compare samples with it."""
        if not self.rules.caps_from_usual:
            return 0.0
        return 1.0 if self.min_avg_pfc is None else self.min_avg_pfc


@dataclass(slots=True)
class VersionFacts:
    """A version's statistics as read at the start of a pass, and the pass's additions to them.

    ``pfc`` does not change during a pass. ``samples`` (of PFC / fpops_est) and ``grants`` (time the job was sent,
    credit) collect, in order, what is added to the current averages afterwards, under a lock. If the app uses the
    median of its hosts' averages, that is ``pfc.avg``.
    """

    id: int
    pfc: Average = field(default_factory=Average)
    pfc_scale: float | None = None
    processor_type: str = ProcessorType.CPU
    samples: list[float] = field(default_factory=list)
    grants: list[tuple[float, float]] = field(default_factory=list)
    # For the feeder only
    is_deprecated: bool = False
    is_counted: bool = False
    cross_project_scale: float | None = None
    # ``pfc_scale`` comes from other projects: it was set, or is in proportion to one that was
    is_scale_received: bool = False
    platform_id: int = 0
    plan_class: str = ""
    version_num: int = 0

    @property
    def is_gpu(self) -> bool:
        return self.processor_type != ProcessorType.CPU


@dataclass(slots=True)
class HostVersionFacts:
    """The statistics of a version on a host, or of a host's own programs (anonymous platform) of a processor type.

    ``pfc``: PFC / fpops_est. ``recent_pfc``: the same since ``samples_since``; ``waiting_pfc``: for at least one delay
    bound before that; ``clean_pfc``: earlier. ``failing_share``: the share of the last jobs (about a hundred) that
    ended without a valid result. ``et``: elapsed seconds / fpops_est. ``turnaround``: seconds. ``host_scale_time``:
    None until the first job is sent. ``max_jobs_per_day`` 0: not set yet. ``n_jobs_today`` counts the jobs of
    ``jobs_day``. ``peak_flops``: the peak at which the averages of PFC were measured; None before the first sample.
    ``lead_jobs``: by how many usual jobs its claims have exceeded those of usual jobs.
    """

    pfc: Average = field(default_factory=Average)
    et: AverageWithVariance = field(default_factory=AverageWithVariance)
    turnaround: AverageWithVariance = field(default_factory=AverageWithVariance)
    scale_probation: bool = True
    host_scale_time: float | None = None
    error_rate: float = 0.1
    consecutive_valid: int = 0
    max_jobs_per_day: int = 0
    n_jobs_today: int = 0
    jobs_day: date | None = None
    clean_pfc: Average = field(default_factory=Average)
    recent_pfc: Average = field(default_factory=Average)
    waiting_pfc: Average = field(default_factory=Average)
    samples_since: float | None = None
    failing_share: float = 0.0
    peak_flops: float | None = None
    lead_jobs: float = 0.0


@dataclass(slots=True)
class WorkunitFacts:
    """A workunit's size (FLOPs), its limit, how it is replicated, and how long its results may be out.

    ``given_credit``: set when it was submitted (Cobblestones); NaN if not. ``is_unconfirmed``: another result was
    needed to confirm its only one, or those of a pair that agrees too often, and did not come in time. ``is_own``: it
    is for its submitter's own computers, so nobody independent confirms it.
    """

    fpops_est: float
    fpops_bound: float
    min_quorum: int = 1
    target_nresults: int = 1
    delay_bound_secs: float = 0.0
    given_credit: float = nan
    is_unconfirmed: bool = field(default=False, kw_only=True)
    is_own: bool = field(default=False, kw_only=True)


@dataclass(slots=True)
class ResultFacts:
    """A result that was reported as a success.

    ``peak_flops`` is that of the devices it was given when it was sent (NaN: their speed is unknown). ``host_version``
    None: nothing is known of what it ran on. ``version`` None: anonymous platform if ``is_anonymous``, else an unknown
    version. ``p_fpops`` (the host's benchmark when the job was sent) and the counts of FLOPs serve the first two credit
    systems; ``partial_elapsed_secs`` and ``partial_credit`` are what trickle-up messages have already been granted.
    ``assigned_credit``: set by a project's function.
    """

    host_version: HostVersionFacts | None
    version: VersionFacts | None
    elapsed_secs: float
    peak_flops: float
    sent_at: float
    received_at: float
    is_anonymous: bool = False
    cpu_secs: float = nan
    is_runtime_outlier: bool = False
    p_fpops: float = nan
    fpops_cumulative: float = nan
    fpops_per_cpu_sec: float = nan
    partial_elapsed_secs: float = 0.0
    partial_credit: float = 0.0
    assigned_credit: float = nan


RESULT_NUMBERS: Final = tuple(column.name for column in fields(ResultFacts))[2:]
"""The result's own fields, in order; the first two are its record and its version."""
