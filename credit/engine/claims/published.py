"""A valid result's claim by the published rules, and its samples for the statistics.

Credit document, "Peak FLOP Count", "Sanity check", "Host normalization", "Anonymous platform" and "Summary".
docs/explanation/credit.md says which choices are ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Final

from credit.engine.averages import Average
from credit.engine.explanation import ClaimRule, Explanation
from credit.engine.facts import AppFacts, HostVersionFacts, ResultFacts, VersionFacts, WorkunitFacts
from credit.engine.lead import count_lead, most_pfc, room_jobs
from credit.engine.peaks import follow_peak, peak_ratio, pfc_at_peak
from credit.engine.probation import fails_often, is_on_probation
from credit.engine.rules import CREDIT_PER_DAY, GFLOP_DAY, MIN_ELAPSED_SECS, Rules, credit_of, pfc_of

_LAST_WITHOUT_SAMPLE: Final = ClaimRule.ZERO_ELAPSED
_VERSION_AND_HOST: Final = ClaimRule.VERSION_AND_HOST
_VERSION_ONLY: Final = ClaimRule.VERSION_ONLY
_HOST_ONLY: Final = ClaimRule.HOST_ONLY
_UNSCALED: Final = ClaimRule.UNSCALED


def default_pfc(app: AppFacts, workunit: WorkunitFacts) -> float:
    """Return a job's "default PFC" D (credit document, "Sanity check"), in FLOPs; finite for any input."""
    least = app.min_avg_pfc
    pfc = workunit.fpops_est if least is None else least * workunit.fpops_est
    return pfc if 0 <= pfc < inf else 0.0


def default_claim(
    rule: ClaimRule,
    app: AppFacts,
    workunit: WorkunitFacts,
    result: ResultFacts,
    raw_pfc: float | None = None,
    on_probation: bool = False,
) -> Explanation:
    """Return the claim of a job whose own numbers are not used; always approximate."""
    pfc = default_pfc(app, workunit)
    claim = Explanation(rule, raw_pfc, pfc, credit_of(pfc), True, None, None, on_probation)
    claim.min_avg_pfc = app.min_avg_pfc
    claim.elapsed_secs = result.elapsed_secs
    if (version := result.version) is not None:
        claim.version_pfc_n = version.pfc.n
        claim.version_pfc_avg = version.pfc.avg
    if (record := result.host_version) is not None:
        claim.host_pfc_n = record.pfc.n
        claim.host_pfc_avg = record.pfc.avg
    return claim


def published_claim(app: AppFacts, workunit: WorkunitFacts, result: ResultFacts, now: float) -> Explanation:
    """Return the claim of a valid result. Changes nothing. The record is as it was before this workunit."""
    version = result.version
    record = result.host_version
    if record is None or (version is None and not result.is_anonymous):
        return default_claim(ClaimRule.NO_VERSION, app, workunit, result)
    on_probation = app.host_scale_check and is_on_probation(record, now, app.rules)
    elapsed = _whole_elapsed_secs(app, result)
    peak = result.peak_flops
    if peak != peak and 0 <= elapsed < inf:
        return default_claim(ClaimRule.UNKNOWN_PEAK, app, workunit, result, None, on_probation)
    raw = elapsed * peak
    if not (0 <= elapsed < inf and 0 < peak < inf):
        return default_claim(ClaimRule.IMPOSSIBLE, app, workunit, result, None, on_probation)
    # Before the run time is cut: a claim of 1e304 FLOPs gets the default, not the whole time between sending and
    # report.
    if raw > workunit.fpops_bound:
        return default_claim(ClaimRule.ABOVE_BOUND, app, workunit, result, raw if raw < inf else None, on_probation)
    if elapsed < MIN_ELAPSED_SECS or not raw:
        return default_claim(ClaimRule.ZERO_ELAPSED, app, workunit, result, 0.0, on_probation)
    out = result.received_at - result.sent_at
    is_cut = elapsed > out
    if is_cut:
        elapsed = out if out > 0 else 0.0
        raw = elapsed * peak
    if result.partial_elapsed_secs:
        raw = max(0.0, elapsed - result.partial_elapsed_secs) * peak
    ratio = peak_ratio(record, result, app.rules)
    pfc = pfc_at_peak(record, ratio)
    if version is None:
        claim = _anonymous(app, workunit, result, record, pfc, raw, ratio, on_probation)
    elif version.pfc_scale is None and app.min_avg_pfc is not None and app.rules.prices_unscaled_by_average:
        claim = default_claim(ClaimRule.UNSCALED_VERSION, app, workunit, result, raw, on_probation)
    else:
        claim = _normalised(app, record, version, pfc, raw, ratio, on_probation)
    claim.elapsed_secs = elapsed
    if claim.host_scale is not None:
        claim.room_jobs = room_jobs(record, app.rules)
    claim.fails_often = on_probation and fails_often(record, app.rules)
    if result.partial_credit:
        add_partial_credit(claim, result)
    if is_cut:
        return _capped_at_default(ClaimRule.OVERLONG, app, workunit, result, claim)
    if claim.claim_rule is _VERSION_ONLY and app.rules.caps_first_claims:
        is_other_peak = pfc.n < app.rules.min_host_samples <= record.et.n
        return _capped_at_default(ClaimRule.FIRST_JOBS, app, workunit, result, claim, is_other_peak)
    return claim


def set_apart_far_claims(workunit: WorkunitFacts, claims: Sequence[Explanation]) -> None:
    """Mark claims as approximate if they exceed a usual job's by more than their records allow (``lead``).

    Other hosts' claims show what the job is worth. A job that is long for everybody is still paid: then all claims are
    approximate, and their mean is granted.
    """
    if len(claims) < 2:
        return
    for claim in claims:
        most = most_pfc(claim, workunit)
        if most is not None:
            claim.is_approximate |= (claim.claimed_pfc or 0.0) > most * (1 + 1e-9)


def _whole_elapsed_secs(app: AppFacts, result: ResultFacts) -> float:
    """Return the run time of the whole job: at least the time credited by trickle-up messages, whatever is reported
    last.

    Otherwise a host could be paid for parts, and a tiny run time at the end would raise its factor.
    """
    elapsed, credited = result.elapsed_secs, result.partial_elapsed_secs
    return credited if app.rules.samples_cover_parts and 0 <= elapsed < credited else elapsed


def add_partial_credit(claim: Explanation, result: ResultFacts) -> None:
    """Add the partial credit granted so far, so that the claim covers the whole job."""
    if claim.claim_rule >= ClaimRule.ANONYMOUS_NORMALISED and claim.claimed_pfc is not None:
        claim.claimed_pfc += pfc_of(result.partial_credit)
        claim.claimed_credit = credit_of(claim.claimed_pfc)


def _normalised(
    app: AppFacts,
    record: HostVersionFacts,
    version: VersionFacts,
    pfc_of_host: Average,
    raw: float,
    ratio: float,
    on_probation: bool,
) -> Explanation:
    """Scale the claim by version and by host, if enough is known of each. ``pfc_of_host``, ``ratio``: see ``peaks``."""
    rules = app.rules
    host_n, host_avg = pfc_of_host.n, pfc_of_host.avg
    version_n, version_avg = version.pfc.n, version.pfc.avg
    pfc = raw
    host_scale = None
    if host_n >= rules.min_host_samples and version_n >= rules.min_version_samples and host_avg and version_avg:
        host_scale = version_avg / host_avg
        if app.host_scale_check:
            most = _most_host_scale(record, ratio, version_avg, on_probation, rules)
            if host_scale > most:
                host_scale = most
        if host_scale > rules.max_host_scale:
            host_scale = rules.max_host_scale
    version_scale = version.pfc_scale
    if version_scale is not None:
        pfc *= version_scale
        rule = _VERSION_ONLY if host_scale is None else _VERSION_AND_HOST
    else:
        rule = _UNSCALED if host_scale is None else _HOST_ONLY
    if host_scale is not None:
        pfc *= host_scale
    return Explanation(
        rule,
        raw,
        pfc,
        pfc * CREDIT_PER_DAY / GFLOP_DAY,
        on_probation or rule is not _VERSION_AND_HOST,
        version_scale,
        host_scale,
        on_probation,
        version_n,
        version_avg,
        host_n,
        host_avg,
        app.min_avg_pfc,
    )


def _most_host_scale(record: HostVersionFacts, ratio: float, average: float, on_probation: bool, rules: Rules) -> float:
    """Return the maximum of the host's factor in apps with probation; ``average`` is the version's, or the app's.

    A host that leaves its long jobs to others has a low average. Clean samples justify a higher factor, with a small
    margin for chance. The document's pseudocode drops the factor during probation; then an occasional failure would pay
    a host that exaggerates.
    """
    if on_probation:
        return 1.0
    if not rules.only_clean_samples_raise:
        return rules.max_host_scale
    clean = record.clean_pfc.avg
    return max(1.0, rules.max_over_clean * average / (clean * ratio)) if clean else 1.0


def _anonymous(
    app: AppFacts,
    workunit: WorkunitFacts,
    result: ResultFacts,
    record: HostVersionFacts,
    used: Average,
    raw: float,
    ratio: float,
    on_probation: bool,
) -> Explanation:
    """Return the claim for a host's own program: there is no version, so the app's lowest average is used instead."""
    rules = app.rules
    least, host_avg = app.min_avg_pfc, used.avg
    if least is None or used.n < rules.min_host_samples or not host_avg or on_probation:
        return default_claim(ClaimRule.ANONYMOUS_DEFAULT, app, workunit, result, raw, on_probation)
    host_scale = least / host_avg
    if app.host_scale_check:
        host_scale = min(host_scale, _most_host_scale(record, ratio, least, on_probation, rules))
    if rules.caps_anonymous_scale and host_scale > rules.max_host_scale:
        host_scale = rules.max_host_scale
    pfc = raw * host_scale
    claim = Explanation(ClaimRule.ANONYMOUS_NORMALISED, raw, pfc, credit_of(pfc), False, None, host_scale, on_probation)
    claim.host_pfc_n = used.n
    claim.host_pfc_avg = host_avg
    claim.min_avg_pfc = least
    return claim


def _capped_at_default(
    rule: ClaimRule,
    app: AppFacts,
    workunit: WorkunitFacts,
    result: ResultFacts,
    claim: Explanation,
    is_other_peak: bool = False,
) -> Explanation:
    """Cap the claim, which is approximate, at the default: nothing has normalised it by host.

    A run time longer than the time between sending and report gives no sample, so nothing ever would normalise it. A
    host's first jobs are not normalised yet, and a host that exaggerates could switch to a new record after them. The
    first job at another peak always claims the default, which is what the host's jobs claimed on average before.
    """
    claim.is_approximate = True
    if not is_other_peak and not (claim.claimed_pfc or 0.0) > default_pfc(app, workunit):
        return claim
    lower = default_claim(rule, app, workunit, result, claim.raw_pfc, claim.on_probation)
    lower.elapsed_secs = claim.elapsed_secs
    lower.fails_often = claim.fails_often
    return lower


def add_published_samples(app: AppFacts, workunit: WorkunitFacts, result: ResultFacts, claim: Explanation) -> None:
    """Update the host's averages and collect the version's sample. Follows the claim, so that no job scales itself.

    The sample covers the whole job, including partial credit. There is none if the numbers are not believed (the sanity
    check failed, they are impossible or zero, or the run time was cut), if the project calls the result an outlier, or
    if the job is for its submitter's own computers. A job on devices of unknown speed gives only samples of its times.
    """
    if workunit.is_own:
        return
    if result.host_version is not None:
        count_lead(result.host_version, claim, workunit, app.rules)
    if result.is_runtime_outlier and app.rules.skips_runtime_outliers:
        return
    elapsed = _whole_elapsed_secs(app, result)
    is_peak_unknown = claim.claim_rule is ClaimRule.UNKNOWN_PEAK
    if (claim.claim_rule <= _LAST_WITHOUT_SAMPLE and not is_peak_unknown) or claim.elapsed_secs != elapsed:
        return
    record = result.host_version
    est = workunit.fpops_est
    if record is None or not 0 < est < inf:
        return
    if not is_peak_unknown:
        _add_pfc_sample(app, record, result, elapsed, est)
    record.et.add(elapsed / est, app.rules.host_average)
    record.turnaround.add(result.received_at - result.sent_at, app.rules.host_average)


def _add_pfc_sample(app: AppFacts, record: HostVersionFacts, result: ResultFacts, elapsed: float, est: float) -> None:
    follow_peak(record, result, app.rules)
    sample = elapsed * result.peak_flops / est
    usual = app.usual_sample
    if (version := result.version) is not None:
        version.samples.append(sample)
        if app.rules.caps_from_usual and version.pfc.avg:
            usual = max(usual, version.pfc.avg)
    average = app.rules.host_average
    record.pfc.add(sample, average, usual)
    if app.rules.only_clean_samples_raise:
        record.recent_pfc.add(sample, average, usual)
