"""Why a result claimed and was granted its credit: the numbers used, stored with the result.

An ``Explanation`` holds exactly the numbers of a claim, so the claim can be recomputed from it and explained in plain
words (``credit.pages.explanation_texts``). A ``Grant`` says which rule turned claims into credit.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final


class ClaimRule(IntEnum):
    """Which rule made a claim. The numbers are stored: never reuse one.

    Rules below 10 claim the default (``LEFT_OUT``: nothing); those up to ``ZERO_ELAPSED`` give no sample of PFC.
    """

    UNKNOWN_PEAK = 0  # the speed of the devices is unknown
    NO_VERSION = 1  # the program and the devices are unknown
    ABOVE_BOUND = 2  # sanity check
    IMPOSSIBLE = 3  # a run time or speed that no computer has
    ZERO_ELAPSED = 4
    ANONYMOUS_DEFAULT = 5
    LEFT_OUT = 6  # deployed: version unknown, host known; no claim
    OVERLONG = 7  # a run time longer than the time between sending and report, which would claim more than the default
    UNSCALED_VERSION = 8  # published: the version has no scale yet, but the app's average is known; gives samples
    FIRST_JOBS = 9  # published: too few samples of the host at this peak
    ANONYMOUS_NORMALISED = 10
    VERSION_AND_HOST = 11
    VERSION_ONLY = 12
    HOST_ONLY = 13
    UNSCALED = 14
    PEAK_FLOPS = 20
    FLOPS_COUNTED = 21
    FLOPS_PER_CPU_SEC = 22
    BENCHMARK = 23
    FIXED_PER_JOB = 30
    FIXED_PER_FLOP = 31
    GIVEN_WITH_JOB = 32
    RUN_TIME = 33
    ASSIGNED = 34


DEFAULT_RULES: Final = frozenset(
    {
        ClaimRule.UNKNOWN_PEAK,
        ClaimRule.NO_VERSION,
        ClaimRule.ABOVE_BOUND,
        ClaimRule.IMPOSSIBLE,
        ClaimRule.ZERO_ELAPSED,
        ClaimRule.ANONYMOUS_DEFAULT,
        ClaimRule.OVERLONG,
        ClaimRule.UNSCALED_VERSION,
        ClaimRule.FIRST_JOBS,
    }
)
"""The rules whose claim is the default: (min_avg_pfc or 1) × fpops_est."""


class GrantRule(IntEnum):
    """Which rule made a grant from the claims. The numbers are stored: never reuse one; all are below ``CUT``."""

    SINGLE_CLAIM = 1  # not replicated: the claim
    MEAN_OF_NORMAL = 2  # the mean of claims that are not approximate
    DEFAULT = 3  # no such claim: the default
    PEGGED_MEAN = 4  # deployed
    LATE_GETS_CANONICAL = 5
    MINIMUM = 6  # first two systems: the lowest of the replicas' claims
    FIXED = 7
    PARTIAL = 8  # for a trickle-up message
    GIVEN = 10  # set with the job when it was submitted
    SINGLE_AHEAD = 11  # not replicated, and more than the record's claims may exceed usual ones
    UNCONFIRMED_PAIR = 12  # of pairs that nobody else confirmed in time: the lowest claim
    UNCONFIRMED_SINGLE = 13  # not confirmed by another result in time: at most the default
    OWN = 15  # for its submitter's own computers: no credit
    CARRIED_OVER = 14  # by the server that the project moved from; used for opening balances
    MEAN_OF_SCALED = 9  # all claims are approximate: the mean of those with both factors


CUT: Final = 64
"""Added to a stored grant rule if the app's maximum cut the grant."""


@dataclass(slots=True)
class Grant:
    """A workunit's credit (Cobblestones), and how it was calculated."""

    credit: float
    rule: GrantRule
    is_cut: bool = False

    @property
    def code(self) -> int:
        """Return the value for the result's column ``grant_rule``."""
        return self.rule + CUT if self.is_cut else int(self.rule)


def grant_rule_of(code: int) -> tuple[GrantRule, bool]:
    """Decode a stored code into the rule and whether the maximum cut the grant; ValueError for an unknown code."""
    return GrantRule(code & ~CUT), bool(code & CUT)


@dataclass(slots=True)
class Explanation:
    """One result's claim and the numbers it was calculated from; all but the last three are columns of the result.

    ``raw_pfc``: FLOPs before scaling, run time × peak FLOPS in the third system (None if impossible); for a result with
    partial credit, the remaining part. ``claimed_pfc`` = ``raw_pfc`` × the scales that are not None + the partial
    credit, or the default; None if the result was left out. ``claimed_credit``: the same in Cobblestones.
    ``version_scale``: the version's scale; in the first two systems, the project's factor. The averages are those read
    before the workunit changed anything; None if a record did not exist or the system does not use them.
    ``elapsed_secs``: the run time used, cut to the time between sending and report. ``fails_often``: the host is on
    probation for its failures, not only because too little is known of it. ``room_jobs``: how many usual jobs' credit
    the claim may exceed a usual one by (None: unlimited).
    """

    claim_rule: ClaimRule
    raw_pfc: float | None
    claimed_pfc: float | None
    claimed_credit: float | None
    is_approximate: bool
    version_scale: float | None = None
    host_scale: float | None = None
    on_probation: bool = False
    version_pfc_n: int | None = None
    version_pfc_avg: float | None = None
    host_pfc_n: int | None = None
    host_pfc_avg: float | None = None
    min_avg_pfc: float | None = None
    elapsed_secs: float | None = None
    fails_often: bool = False
    room_jobs: float | None = None
