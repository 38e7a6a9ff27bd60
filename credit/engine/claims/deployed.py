"""A valid result's claim by the formulas of BOINC's server, and its samples for the statistics.

See docs/explanation/credit.md, "The rule sets". An undefined ``min_avg_pfc`` or ``pfc_scale`` is None here; BOINC's
server has 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, nan
from typing import Final

from credit.engine.claims.published import add_partial_credit, default_claim, default_pfc
from credit.engine.explanation import ClaimRule, Explanation
from credit.engine.facts import AppFacts, ResultFacts, WorkunitFacts
from credit.engine.rules import MIN_ELAPSED_SECS, Rules, credit_of


def deployed_claim(app: AppFacts, workunit: WorkunitFacts, result: ResultFacts) -> Explanation:
    """Return the claim of a valid result, not yet cut to the bound. Changes nothing."""
    record = result.host_version
    if record is None:
        return default_claim(ClaimRule.NO_VERSION, app, workunit, result)
    elapsed = _elapsed(result)
    peak, _ = effective_peak_flops(result, app.rules)
    raw = (elapsed - result.partial_elapsed_secs) * peak
    distrusted = app.host_scale_check and record.consecutive_valid < app.rules.trusted_after_valid
    if not -inf < raw < inf:
        return default_claim(ClaimRule.IMPOSSIBLE, app, workunit, result, None, distrusted)
    if result.is_anonymous:
        claim = _anonymous(app, workunit, result, raw, distrusted)
    elif result.version is None:
        claim = default_claim(ClaimRule.LEFT_OUT, app, workunit, result, raw, distrusted)
        claim.claimed_pfc = claim.claimed_credit = None
    else:
        claim = _normalised(app, result, raw, distrusted)
    claim.elapsed_secs = elapsed
    if result.partial_credit:
        add_partial_credit(claim, result)
    return claim


def _anonymous(
    app: AppFacts, workunit: WorkunitFacts, result: ResultFacts, raw: float, distrusted: bool
) -> Explanation:
    record = result.host_version
    assert record is not None
    average = record.pfc
    if average.n < app.rules.min_host_samples or not average.avg or distrusted:
        return default_claim(ClaimRule.ANONYMOUS_DEFAULT, app, workunit, result, raw, distrusted)
    host_scale = (app.min_avg_pfc or 0.0) / average.avg
    pfc = raw * host_scale
    claim = Explanation(ClaimRule.ANONYMOUS_NORMALISED, raw, pfc, credit_of(pfc), True, None, host_scale, distrusted)
    claim.host_pfc_n = average.n
    claim.host_pfc_avg = average.avg
    claim.min_avg_pfc = app.min_avg_pfc
    return claim


def _normalised(app: AppFacts, result: ResultFacts, raw: float, distrusted: bool) -> Explanation:
    record, version = result.host_version, result.version
    assert record is not None and version is not None
    rules = app.rules
    host, whole = record.pfc, version.pfc
    host_scale = None
    if not distrusted and host.n >= rules.min_host_samples and host.avg and whole.n >= rules.min_version_samples:
        host_scale = min(rules.max_host_scale, (whole.avg or 0.0) / host.avg) or None
    pfc = raw
    if version.pfc_scale:
        pfc *= version.pfc_scale
        rule = ClaimRule.VERSION_AND_HOST if host_scale else ClaimRule.VERSION_ONLY
    else:
        rule = ClaimRule.HOST_ONLY if host_scale else ClaimRule.UNSCALED
    if host_scale:
        pfc *= host_scale
    return Explanation(
        rule,
        raw,
        pfc,
        credit_of(pfc),
        rule is not ClaimRule.VERSION_AND_HOST,
        version.pfc_scale,
        host_scale,
        distrusted,
        whole.n,
        whole.avg,
        host.n,
        host.avg,
        app.min_avg_pfc,
    )


def _elapsed(result: ResultFacts) -> float:
    """Return the run time, or the CPU time if there is none."""
    elapsed = result.elapsed_secs
    return result.cpu_secs if elapsed < MIN_ELAPSED_SECS else elapsed


def effective_peak_flops(result: ResultFacts, rules: Rules) -> tuple[float, bool]:
    """Return the speed to compute with, and whether it replaces an unknown one."""
    peak = result.peak_flops
    if rules.substitute_peak_flops is not None and (not peak > 0 or peak == rules.unknown_peak_flops):
        return rules.substitute_peak_flops, True
    return peak, False


def add_deployed_samples(app: AppFacts, workunit: WorkunitFacts, result: ResultFacts, claim: Explanation) -> None:
    """Update the host's averages and collect the version's sample, unless the result counts as an outlier.

    Samples of PFC must be within limits; those of run time and turnaround need not.
    """
    record = result.host_version
    if workunit.is_own or record is None or claim.claim_rule in (ClaimRule.LEFT_OUT, ClaimRule.IMPOSSIBLE):
        return
    rules = app.rules
    peak, is_substitute = effective_peak_flops(result, rules)
    if is_substitute or (result.is_runtime_outlier and rules.skips_runtime_outliers):
        return
    est = workunit.fpops_est if 0 < workunit.fpops_est < inf else nan
    elapsed = _elapsed(result)
    sample = elapsed * peak / est
    average = rules.host_average
    if rules.min_sample <= sample <= rules.max_sample:
        if result.version is not None:
            result.version.samples.append(sample)
        record.pfc.add(sample, average)
    record.et.add(elapsed / est, average)
    record.turnaround.add(result.received_at - result.sent_at, average)


def pegged_mean(values: list[float], anchor: float, width: float) -> float:
    """Return the mean of values, weighted by how near each is to ``anchor``; a single value is returned as it is.

    ``width`` is relative to the anchor. Raises ValueError if there are no values.
    """
    if not values:
        raise ValueError("a mean of nothing")
    if len(values) == 1:
        return values[0]
    weights = [1 / (width * anchor + abs(anchor - value) or MIN_DISTANCE) for value in values]
    return sum(weight * value for weight, value in zip(weights, values, strict=True)) / sum(weights)


MIN_DISTANCE: Final = 1e-300
"""Replaces a distance of 0, which is only possible for an anchor of 0."""


def deployed_pfc(app: AppFacts, workunit: WorkunitFacts, claims: Sequence[Explanation], width: float) -> float:
    """Return the FLOPs granted to a set: claims are cut to the bound and averaged about the estimate (``pegged_mean``).

    If two or more claims are not approximate, only these count. If one is, it counts twice among the approximate ones.
    Claims whose credit exceeds the app's maximum are left out.
    """
    anchor = default_pfc(app, workunit)
    most = app.rules.max_granted_credit
    normal: list[float] = []
    approximate: list[float] = []
    for claim in claims:
        if claim.claimed_pfc is None:
            continue
        pfc = min(claim.claimed_pfc, workunit.fpops_bound)
        if most is not None and credit_of(pfc) > most:
            continue
        (approximate if claim.is_approximate else normal).append(pfc)
    if len(normal) == 1:
        approximate += normal * 2
    used = normal if len(normal) > 1 else approximate
    return pegged_mean(used, anchor, width) if used else anchor
