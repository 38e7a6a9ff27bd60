"""The rule sets: the credit document with its loopholes closed, the document to the letter, and BOINC's own formulas.

Every threshold, limit and cap of the engine is a field of ``Rules``. An app chooses a set and may replace the limits
that the document leaves to projects (``Rules.with_limits``). docs/explanation/credit.md compares the sets.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import inf
from typing import Any, Final

from credit.engine.averages import AverageRules

CREDIT_PER_DAY: Final = 200
"""Cobblestones for a day of a 1 GFLOPS processor."""
GFLOP_DAY: Final = 86400e9
MAX_CREDIT: Final = 1e15
"""The most credit that one job can be granted, whatever an app's setting."""
MAX_STATISTIC: Final = 1e30
"""Sums and averages of credit and of normalised PFC stay below this: only broken statistics come near."""
LEAST_CREDIT: Final = 1e-100
"""Less counts as none: quotients of grants must be numbers that a database can store."""
MIN_ELAPSED_SECS: Final = 1e-6
"""A shorter run time counts as none, as in BOINC's server."""


def credit_of(pfc: float) -> float:
    """Return the credit (Cobblestones) for a count of FLOPs (credit document, "Claimed and granted credit")."""
    return pfc * CREDIT_PER_DAY / GFLOP_DAY


def pfc_of(credit: float) -> float:
    """Return the FLOPs that are worth this much credit."""
    return credit * GFLOP_DAY / CREDIT_PER_DAY


def _(text: str) -> str:
    """Mark a text for translation, which pages do."""
    return text


class RuleSet(StrEnum):
    """The rule sets, each with its label on pages. A classmethod of `Rules` with its name builds it (`Rules.of`)."""

    label: str

    def __new__(cls, name: str, label: str = "") -> RuleSet:
        made = str.__new__(cls, name)
        made._value_, made.label = name, label
        return made

    PUBLISHED = "published", _("as published, with loopholes closed")
    LETTER = "letter", _("exactly as in the credit document")
    DEPLOYED = "deployed", _("as BOINC’s own server calculates")


class Scaling(StrEnum):
    """How the feeder scales an app's versions (credit document, "Cross-version normalization")."""

    KEPT = "kept"  # a withdrawn version keeps its scale, and a new one inherits one
    RENEWED = "renewed"  # the letter: such a version has no scale, and its jobs claim their whole run time
    NEWEST = "newest"  # deployed: the newest version of each kind counts, and factors of other projects do not


class RulesError(ValueError):
    """A limit that no rule set can have. The message names the field and the range."""

    def __init__(self, name: str, value: object, low: float, high: float) -> None:
        super().__init__(f"{name} must be from {low:g} to {high:g}, not {value!r}")
        self.name = name
        self.low = low
        self.high = high


# The limits that an app may replace: minimum and maximum. The names are those of the app's columns.
LIMITS: Final[dict[str, tuple[float, float]]] = {
    "host_avg_samples": (1, 10_000),
    "host_avg_weight": (1e-6, 1),
    "host_avg_limit": (1, 1e6),
    "version_avg_samples": (1, 1_000_000),
    "version_avg_weight": (1e-6, 1),
    "version_avg_limit": (1, 1e6),
    "min_host_samples": (1, 10_000),
    "min_version_samples": (1, 1_000_000),
    "max_host_scale": (1, 1e6),
    "max_granted_credit": (1e-6, MAX_CREDIT),
    "min_replication_chance": (0.001, 1),
}


@dataclass(frozen=True, slots=True)
class Rules:
    """One set of rules; the defaults are the published ones. Counts are of samples or jobs; times are in seconds.

    ``min_host_samples`` and ``min_version_samples`` are the document's sample thresholds: an average is used once it
    has this many samples. The comments name a field's source; "deployed" ones do nothing in the published set.
    """

    rule_set: RuleSet = RuleSet.PUBLISHED
    # "Computing averages": N, A and X of hosts and of versions
    host_avg_samples: int = 10
    host_avg_weight: float = 0.01
    host_avg_limit: float = 10.0
    version_avg_samples: int = 100
    version_avg_weight: float = 0.001
    version_avg_limit: float = 100.0
    is_sample_n_even: bool = True  # False: deployed, sample number N is already weighted
    # False: the letter. X caps samples at a multiple of the average so far, even if its first sample was close to zero;
    # it then stays far too low for thousands of jobs.
    caps_from_usual: bool = True
    min_host_samples: int = 10
    min_version_samples: int = 100
    # "Host normalization", "Cheat prevention", "Anonymous platform"
    max_host_scale: float = 10.0
    caps_anonymous_scale: bool = True
    trusted_after_valid: int = 0  # deployed: consecutive valid results, in place of probation
    # "Cheat prevention": not only errors and aborts, but every ending without a valid result begins a spell of
    # probation
    counts_every_ending: bool = True
    # False: the letter. A host that picks its jobs fails the others, and its average is of those that it picked.
    only_clean_samples_raise: bool = True
    max_failing_share: float = 0.05  # of the last jobs; above it no samples become clean
    failing_weight: float = 0.01  # of a job in that share
    max_over_clean: float = 1.25  # the host's factor, if above 1, over the one that clean samples justify
    # "Cross-version normalization"
    scaling: Scaling = Scaling.KEPT
    # "Peak FLOP Count". False: the letter. Without a scale a claim is not scaled, even if the app's average is known.
    prices_unscaled_by_average: bool = True
    # False: the letter. A host that reports another peak claims by it until its average has followed.
    averages_follow_peak: bool = True
    # None: the letter. By how many usual jobs a record's claims may exceed those of usual jobs in total, and as which
    # share of its jobs.
    max_lead_jobs: float | None = 40.0
    max_lead_share: float = 0.3
    # False: the letter. A host's first jobs claim by its own peak alone, however high.
    caps_first_claims: bool = True
    extra_samples_in_mean: int = 0  # deployed: more than the threshold, to count in the groups' means
    only_gpu_scale: float | None = None  # deployed: of an app that has GPU versions only
    # Deployed: claims and samples by the formulas of BOINC's server (credit.engine.claims.deployed)
    claims_as_server: bool = False
    # "Sanity check"; deployed filters of samples
    min_sample: float = 0.0
    max_sample: float = inf
    unknown_peak_flops: float | None = None  # a benchmark that failed reports this speed, and gets the next one
    substitute_peak_flops: float | None = None
    skips_runtime_outliers: bool = True  # of BOINC's server; the document does not know them: False to the letter
    # "Claimed and granted credit"
    max_granted_credit: float | None = None
    peg_width: float | None = None  # deployed: claims are averaged about the estimate, with this relative width
    averages_claims: bool = False  # deployed: a version's recent average is of claims, by the server's formula
    # "Error rate, host punishment". False, False and True: deployed
    counts_validity_first: bool = True  # before the claims of a first decision
    trusts_every_comparison: bool = True  # also of a workunit that was to have one result, but got several
    decides_late_singly: bool = False  # each late result separately, not those of a pass together
    initial_error_rate: float = 0.1
    error_rate_kept_when_valid: float = 0.95
    error_rate_step: float = 0.1
    max_error_rate_for_single: float = 0.05
    # "Replicate for a while". By the letter a host is trusted until it fails, but single results that are made up never
    # fail. Nor do single results, which were compared with nothing, lower the error rate.
    trusts_compared_only: bool = True
    # After this many valid results in a row the chance of a second one falls; 0, 0 and None: the letter.
    always_replicated_valid: int = 10
    min_replication_chance: float = 0.05
    # A single result this far from the averages is replicated before it is granted; a claim this far above its host's
    # average, or beyond its lead, does not set anybody else's credit.
    confirmation_factor: float | None = 10.0
    # False: the letter. "Cheat prevention" resets the error rate, which would improve a worse one.
    cheats_keep_worse_error_rate: bool = True
    daily_result_quota: int | None = None  # deployed: validity moves the quota, down to this
    # "Peak FLOP Count", notes: credit for parts of a job. False: the letter
    bounds_partial_credit: bool = True  # by what the computer's processors can have done
    approximate_parts_wait: bool = True  # for the final report
    samples_cover_parts: bool = True  # a shorter run time in the final report does not improve the host's average
    # Estimates of run time
    cpu_efficiency: float = 0.5
    gpu_efficiency: float = 0.1
    credit_half_life_secs: float = 7 * 86400.0
    # Derived from the fields above
    host_average: AverageRules = field(init=False, repr=False)
    version_average: AverageRules = field(init=False, repr=False)

    def __post_init__(self) -> None:
        less = 0 if self.is_sample_n_even else 1
        host = AverageRules(self.host_avg_samples - less, self.host_avg_weight, self.host_avg_limit)
        version = AverageRules(self.version_avg_samples - less, self.version_avg_weight, self.version_avg_limit)
        object.__setattr__(self, "host_average", host)
        object.__setattr__(self, "version_average", version)

    @classmethod
    def published(cls) -> Rules:
        """Return the credit document's rules, with the numbers it suggests and its loopholes closed."""
        return cls()

    @classmethod
    def letter(cls) -> Rules:
        """Return the credit document's rules word for word, without the corrections of the published set."""
        return cls(
            rule_set=RuleSet.LETTER,
            caps_from_usual=False,
            caps_anonymous_scale=False,
            scaling=Scaling.RENEWED,
            prices_unscaled_by_average=False,
            averages_follow_peak=False,
            caps_first_claims=False,
            max_lead_jobs=None,
            bounds_partial_credit=False,
            approximate_parts_wait=False,
            samples_cover_parts=False,
            cheats_keep_worse_error_rate=False,
            always_replicated_valid=0,
            min_replication_chance=0.0,
            confirmation_factor=None,
            skips_runtime_outliers=False,
            counts_every_ending=False,
            only_clean_samples_raise=False,
            trusts_compared_only=False,
        )

    @classmethod
    def deployed(cls) -> Rules:
        """Return the formulas of BOINC's server, for projects that move here and must not see a jump in credit."""
        return cls(
            rule_set=RuleSet.DEPLOYED,
            host_avg_samples=20,
            version_avg_limit=10.0,
            is_sample_n_even=False,
            caps_from_usual=False,
            caps_anonymous_scale=False,
            trusted_after_valid=10,
            counts_every_ending=False,
            only_clean_samples_raise=False,
            scaling=Scaling.NEWEST,
            claims_as_server=True,
            averages_follow_peak=False,
            caps_first_claims=False,
            max_lead_jobs=None,
            extra_samples_in_mean=1,
            only_gpu_scale=0.1,
            min_sample=1e-4,
            max_sample=1e4,
            unknown_peak_flops=1e9,
            substitute_peak_flops=4.3e9,
            skips_runtime_outliers=True,
            max_granted_credit=200.0 * 1000 * 365,
            peg_width=0.1,
            averages_claims=True,
            counts_validity_first=False,
            trusts_every_comparison=False,
            decides_late_singly=True,
            daily_result_quota=500,
            always_replicated_valid=0,
            min_replication_chance=0.0,
            confirmation_factor=None,
            bounds_partial_credit=False,
            approximate_parts_wait=False,
            samples_cover_parts=False,
        )

    @classmethod
    def of(cls, rule_set: str) -> Rules:
        """Return the set of that name (``RuleSet``); ValueError for any other."""
        made: Rules = getattr(cls, RuleSet(rule_set))()
        return made

    def with_limits(self, **limits: float | None) -> Rules:
        """Return these rules with an app's own limits (the names in ``LIMITS``); None keeps the set's value.

        Raises RulesError for a value out of range, TypeError for a name that is not a limit.
        """
        given: dict[str, Any] = {}
        for name, value in limits.items():
            if name not in LIMITS:
                raise TypeError(f"{name} is not a limit of an app")
            if value is None:
                continue
            low, high = LIMITS[name]
            if not low <= value <= high:
                raise RulesError(name, value, low, high)
            given[name] = value
        return replace(self, **given) if given else self
