"""Small makers of the engine's facts, with round numbers: a job of 1e12 FLOPs on a processor of 1 GFLOPS."""

from __future__ import annotations

from typing import Any

import pytest

from credit.engine.averages import Average
from credit.engine.claims.published import default_pfc
from credit.engine.decisions import Decision, decide_set
from credit.engine.explanation import DEFAULT_RULES, ClaimRule, Explanation
from credit.engine.facts import AppFacts, HostVersionFacts, ResultFacts, VersionFacts, WorkunitFacts
from credit.engine.rules import Rules, credit_of, pfc_of
from credit.pages.explanation_texts import has_partial_credit

NOW = 1_800_000_000.0
DAY = 86400.0
WEEK = 7 * DAY
EST = 1e12
"""FLOPs of a job; at PEAK it takes 1,000 s, and its sample of PFC / fpops_est is 1."""
BOUND = 1e14
PEAK = 1e9
CREDIT_OF_EST = 2.314814814814815
"""1e12 × 200 / 86400e9."""


def about(value: float, rel: float | None = None, abs: float | None = None) -> Any:
    """A number that equals others near it, wherever a number may stand."""
    return pytest.approx(value, rel=rel, abs=abs)


def app(rules: Rules | None = None, **fields: Any) -> AppFacts:
    return AppFacts(1, rules or Rules.published(), **fields)


def version(n: int = 0, avg: float | None = None, scale: float | None = None, **fields: Any) -> VersionFacts:
    return VersionFacts(fields.pop("id", 1), Average(n, avg), scale, **fields)


def record(n: int = 0, avg: float | None = None, **fields: Any) -> HostVersionFacts:
    """A host's record; off probation unless a field says otherwise, and then all its samples are clean."""
    fields.setdefault("scale_probation", False)
    if not fields["scale_probation"]:
        fields.setdefault("clean_pfc", Average(n, avg))
    return HostVersionFacts(Average(n, avg), **fields)


def workunit(**fields: Any) -> WorkunitFacts:
    given: dict[str, Any] = {"fpops_est": EST, "fpops_bound": BOUND, **fields}
    return WorkunitFacts(**given)


def result(
    of: HostVersionFacts | None, ran: VersionFacts | None, elapsed_secs: float = 1000.0, **fields: Any
) -> ResultFacts:
    """A result that was out for a day."""
    given: dict[str, Any] = {"peak_flops": PEAK, "sent_at": NOW - DAY, "received_at": NOW, **fields}
    return ResultFacts(of, ran, elapsed_secs, **given)


def anonymous(of: HostVersionFacts | None, elapsed_secs: float = 1000.0, **fields: Any) -> ResultFacts:
    return result(of, None, elapsed_secs, is_anonymous=True, **fields)


def decide(facts: AppFacts, *results: ResultFacts, job: WorkunitFacts | None = None, now: float = NOW) -> Decision:
    """Decides a workunit with these valid results and none that is invalid."""
    return decide_set(facts, job or workunit(), results, [], now)


def recomputed_pfc(claim: Explanation, workunit: WorkunitFacts, partial_credit: float = 0.0) -> float | None:
    """``claimed_pfc`` worked out again from the other numbers; ``partial_credit`` is what trickles brought."""
    if claim.claim_rule is ClaimRule.LEFT_OUT:
        return None
    if claim.claim_rule in DEFAULT_RULES:
        # What the default needs of an app is in the explanation.
        return default_pfc(AppFacts(0, Rules.published(), claim.min_avg_pfc), workunit)
    pfc = claim.raw_pfc or 0.0
    for scale in (claim.version_scale, claim.host_scale):
        if scale is not None:
            pfc *= scale
    return pfc + pfc_of(partial_credit) if has_partial_credit(claim.claim_rule) else pfc


def recomputed_credit(claim: Explanation, workunit: WorkunitFacts, partial_credit: float = 0.0) -> float | None:
    """``claimed_credit`` worked out again from the other numbers."""
    pfc = recomputed_pfc(claim, workunit, partial_credit)
    return None if pfc is None else credit_of(pfc)
