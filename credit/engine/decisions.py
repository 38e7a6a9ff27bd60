"""One workunit's decision: count validity, make claims, grant credit, update statistics, in the rule set's order.

The published rules count validity before claims; all claims of a workunit use the averages from before it. The deployed
rules count validity after the claims of a first set, and before those of a late result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from credit.engine.claims.deployed import add_deployed_samples, deployed_claim
from credit.engine.claims.published import add_published_samples, published_claim, set_apart_far_claims
from credit.engine.claims.systems import other_claim
from credit.engine.explanation import ClaimRule, Explanation, Grant
from credit.engine.facts import AppFacts, CreditSystem, HostVersionFacts, ResultFacts, WorkunitFacts
from credit.engine.grants import due, grant, late_grant
from credit.engine.probation import count_cheat, count_invalid, count_valid

_FAILED_SANITY_CHECK: Final = (ClaimRule.ABOVE_BOUND, ClaimRule.IMPOSSIBLE)


@dataclass(slots=True)
class Decision:
    """The grant for a workunit's valid results, and each one's claim, in the order of the input."""

    grant: Grant
    claims: list[Explanation]


def decide_set(
    app: AppFacts,
    workunit: WorkunitFacts,
    valid: Sequence[ResultFacts],
    invalid: Sequence[HostVersionFacts | None],
    now: float,
) -> Decision:
    """Decide a workunit that has just got its canonical result.

    ``valid`` are its valid results (at least one), ``invalid`` the records of those found wrong. Changes the records
    and collects the versions' samples and grants. A result gets ``grants.due(decision.grant, result)``.
    """
    is_counted_first = app.rules.counts_validity_first
    if is_counted_first:
        _count_validity(app, workunit, valid, invalid, now)
    claims, creditnew_claims = _claims(app, workunit, valid, now)
    if not is_counted_first:
        _count_validity(app, workunit, valid, invalid, now)
    if claims is creditnew_claims:
        set_apart_far_claims(workunit, claims)
    granted = grant(app, workunit, claims)
    _update_statistics(app, workunit, valid, creditnew_claims, granted, now)
    return Decision(granted, claims)


def decide_late(
    app: AppFacts,
    workunit: WorkunitFacts,
    valid: Sequence[ResultFacts],
    invalid: Sequence[HostVersionFacts | None],
    canonical_credit: float,
    now: float,
) -> Decision:
    """Decide results that came after their workunit was decided: they get its grant; claims only feed the statistics.

    The claims are by the third system's rules, or the app's own, as in ``decide_set``.
    """
    _count_validity(app, workunit, valid, invalid, now, is_late=True)
    claims, creditnew_claims = _claims(app, workunit, valid, now)
    granted = late_grant(canonical_credit)
    _update_statistics(app, workunit, valid, creditnew_claims, granted, now)
    return Decision(granted, claims)


def count_only_invalid(
    app: AppFacts, workunit: WorkunitFacts, invalid: Sequence[HostVersionFacts | None], now: float
) -> None:
    """Count results found wrong, for a workunit that has no canonical result (yet)."""
    for record in invalid:
        if record is not None:
            count_invalid(record, now, workunit.delay_bound_secs, app.rules)


def _count_validity(
    app: AppFacts,
    workunit: WorkunitFacts,
    valid: Sequence[ResultFacts],
    invalid: Sequence[HostVersionFacts | None],
    now: float,
    *,
    is_late: bool = False,
) -> None:
    rules = app.rules
    is_unreplicated = workunit.target_nresults == 1 and app.target_nresults > 1
    if rules.trusts_every_comparison and (is_late or len(valid) > 1):
        is_unreplicated = False  # it was compared nevertheless
    for result in valid:
        if result.host_version is not None:
            count_valid(result.host_version, now, workunit.delay_bound_secs, rules, is_unreplicated)
    for record in invalid:
        if record is not None:
            count_invalid(record, now, workunit.delay_bound_secs, rules)


def _claims(
    app: AppFacts, workunit: WorkunitFacts, valid: Sequence[ResultFacts], now: float
) -> tuple[list[Explanation], list[Explanation]]:
    """Return the claims by the app's system, and those by CreditNew, which decide what gives a sample."""
    if app.rules.claims_as_server:
        creditnew_claims = [deployed_claim(app, workunit, result) for result in valid]
    else:
        creditnew_claims = [published_claim(app, workunit, result, now) for result in valid]
    if app.credit_system is CreditSystem.CREDITNEW:
        return creditnew_claims, creditnew_claims
    return [
        other_claim(app, workunit, r, claim) for r, claim in zip(valid, creditnew_claims, strict=True)
    ], creditnew_claims


def _update_statistics(
    app: AppFacts,
    workunit: WorkunitFacts,
    valid: Sequence[ResultFacts],
    creditnew_claims: Sequence[Explanation],
    granted: Grant,
    now: float,
) -> None:
    """Update the statistics with results whose claims have all been made.

    Versions were already credited for trickle-up messages.
    """
    rules = app.rules
    claims_as_server, averages_claims = rules.claims_as_server, rules.averages_claims
    for result, claim in zip(valid, creditnew_claims, strict=True):
        if claims_as_server:
            add_deployed_samples(app, workunit, result, claim)
        elif claim.claim_rule in _FAILED_SANITY_CHECK and result.host_version is not None:
            count_cheat(result.host_version, now, workunit.delay_bound_secs, rules)
        else:
            add_published_samples(app, workunit, result, claim)
        version = result.version
        if version is None:
            continue
        if not averages_claims:
            version.grants.append((result.sent_at, due(granted, result)))
        elif claim.claimed_credit is not None:
            # Capped, because a single cheat could otherwise put millions into a version's recent average.
            version.grants.append((result.sent_at, max(0.0, claim.claimed_credit - result.partial_credit)))
