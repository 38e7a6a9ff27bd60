"""A valid result's claim in the other credit systems: benchmark × CPU time, counted FLOPs, run time, set amounts.

Credit document, "The first credit system" and "The second credit system". The statistics of the third system are kept
whichever system the app uses, so that it can change; the third system's sanity check applies to the first two as well.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf

from credit.engine.claims.published import default_claim
from credit.engine.explanation import ClaimRule, Explanation
from credit.engine.facts import AppFacts, CreditSystem, ResultFacts, WorkunitFacts
from credit.engine.rules import MAX_CREDIT, credit_of, pfc_of


def other_claim(app: AppFacts, workunit: WorkunitFacts, result: ResultFacts, claim: Explanation) -> Explanation:
    """Return the claim by the app's system; ``claim`` is CreditNew's, which has checked the run time."""
    if app.credit_system is CreditSystem.FIXED:
        return _fixed(app, workunit, claim)
    if app.credit_system is CreditSystem.GIVEN:
        return _amount(ClaimRule.GIVEN_WITH_JOB, workunit.given_credit, claim)
    if app.credit_system is CreditSystem.ASSIGNED:
        return _amount(ClaimRule.ASSIGNED, result.assigned_credit, claim)
    if claim.claim_rule in (ClaimRule.ABOVE_BOUND, ClaimRule.IMPOSSIBLE):
        return claim
    rule, flops, scale = _count(app, result, claim.elapsed_secs)
    if not 0 <= flops < inf:
        return default_claim(ClaimRule.IMPOSSIBLE, app, workunit, result)
    if flops > workunit.fpops_bound:
        return default_claim(ClaimRule.ABOVE_BOUND, app, workunit, result, flops)
    if not flops:
        return default_claim(ClaimRule.ZERO_ELAPSED, app, workunit, result, 0.0)
    pfc = flops if scale is None else flops * scale
    other = Explanation(rule, flops, pfc, credit_of(pfc), False, version_scale=scale)
    other.elapsed_secs = claim.elapsed_secs
    return other


def _count(app: AppFacts, result: ResultFacts, elapsed_secs: float | None) -> tuple[ClaimRule, float, float | None]:
    """Return the rule, the FLOPs, and the project's factor on them."""
    if app.credit_system is CreditSystem.RUN_TIME:
        return ClaimRule.RUN_TIME, _run_time_flops(app, result, elapsed_secs), None
    if app.credit_system is CreditSystem.PEAK_FLOPS:
        return ClaimRule.PEAK_FLOPS, _benchmark_flops(result, elapsed_secs), None
    # Clients send a count of zero for apps that do not count.
    if result.fpops_cumulative > 0:
        return ClaimRule.FLOPS_COUNTED, result.fpops_cumulative, app.actual_flops_scale
    if result.fpops_per_cpu_sec > 0:
        return ClaimRule.FLOPS_PER_CPU_SEC, result.fpops_per_cpu_sec * result.cpu_secs, app.actual_flops_scale
    return ClaimRule.BENCHMARK, _benchmark_flops(result, elapsed_secs), app.benchmark_scale


def _benchmark_flops(result: ResultFacts, elapsed_secs: float | None) -> float:
    """Return Whetstone × CPU time, at most what the devices can do in the run time (cut to the time out)."""
    flops = result.p_fpops * result.cpu_secs
    out = result.received_at - result.sent_at
    # A run time that is not a number is no limit.
    most = min(out, out if elapsed_secs is None else elapsed_secs) * result.peak_flops
    return most if 0 <= most < flops < inf else flops  # neither is an unknown speed


def _run_time_flops(app: AppFacts, result: ResultFacts, elapsed_secs: float | None) -> float:
    """Return the run time, up to the app's limit, × peak FLOPS of the devices; 0 if their speed is unknown."""
    secs = 0.0 if elapsed_secs is None else min(elapsed_secs, app.max_credited_secs or inf)
    return secs * result.peak_flops if result.peak_flops == result.peak_flops else 0.0


def _amount(rule: ClaimRule, credit: float, claim: Explanation) -> Explanation:
    """Return a claim of the credit that the project set, or of nothing if it set none."""
    credit = credit if 0 <= credit <= MAX_CREDIT else 0.0
    pfc = pfc_of(credit)
    return Explanation(rule, pfc, pfc, credit, False, elapsed_secs=claim.elapsed_secs)


def _fixed(app: AppFacts, workunit: WorkunitFacts, claim: Explanation) -> Explanation:
    """Claim a fixed amount per job, else per estimated FLOP; nothing if neither is set."""
    if app.fixed_credit is not None or app.fixed_credit_per_flop is None:
        credit = app.fixed_credit or 0.0
        pfc = pfc_of(credit)
        fixed = Explanation(ClaimRule.FIXED_PER_JOB, pfc, pfc, credit, False)
    else:
        scale = pfc_of(app.fixed_credit_per_flop)
        pfc = workunit.fpops_est * scale
        fixed = Explanation(ClaimRule.FIXED_PER_FLOP, workunit.fpops_est, pfc, credit_of(pfc), False, scale)
    return replace(fixed, elapsed_secs=claim.elapsed_secs)
