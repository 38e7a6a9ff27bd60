"""A workunit's grant from its valid results' claims (credit document, "Claimed and granted credit")."""

from __future__ import annotations

from collections.abc import Sequence

from credit.engine.claims.deployed import deployed_pfc
from credit.engine.claims.published import default_pfc
from credit.engine.explanation import ClaimRule, Explanation, Grant, GrantRule
from credit.engine.facts import AppFacts, CreditSystem, ReplicaRule, ResultFacts, WorkunitFacts
from credit.engine.lead import most_pfc
from credit.engine.rules import LEAST_CREDIT, MAX_CREDIT, credit_of


def grant(app: AppFacts, workunit: WorkunitFacts, claims: Sequence[Explanation]) -> Grant:
    """Return a workunit's credit, from the claims of all its valid results (at least one).

    A workunit is replicated if its quorum is above one or if it has several valid results. If it is not, the claim is
    granted, approximate or not. If it is, approximate claims do not count; if all are approximate, those with both
    factors count, whose hosts are on probation. If there are none of these either, the default is granted: if most
    hosts of an app are on probation, it would otherwise pay a host that picks its jobs.
    """
    if workunit.is_own:
        return Grant(0.0, GrantRule.OWN)
    if app.credit_system is CreditSystem.FIXED:
        return _at_most(app, claims[0].claimed_credit or 0.0, GrantRule.FIXED)
    if app.credit_system is CreditSystem.GIVEN:
        return _at_most(app, claims[0].claimed_credit or 0.0, GrantRule.GIVEN)
    if workunit.is_unconfirmed:
        # Nobody confirmed their run times either: no more than each would get alone.
        smallest = min(_alone(claim, workunit) for claim in claims)
        if len(claims) > 1:
            return _at_most(app, smallest, GrantRule.UNCONFIRMED_PAIR)
        return _at_most(app, min(smallest, credit_of(default_pfc(app, workunit))), GrantRule.UNCONFIRMED_SINGLE)
    width = app.rules.peg_width
    if width is not None and app.credit_system is CreditSystem.CREDITNEW:
        return _at_most(app, credit_of(deployed_pfc(app, workunit, claims, width)), GrantRule.PEGGED_MEAN)
    if len(claims) == 1 and workunit.min_quorum <= 1:
        return _single(app, workunit, claims[0])
    count = 0
    total = 0.0
    least = MAX_CREDIT
    for claim in claims:
        if not claim.is_approximate:
            credit = claim.claimed_credit or 0.0
            count += 1
            total += credit
            if credit < least:
                least = credit
    if not count and app.rules.only_clean_samples_raise:
        normalised = [claim for claim in claims if claim.claim_rule is ClaimRule.VERSION_AND_HOST]
        scaled = [claim.claimed_credit or 0.0 for claim in normalised if not claim.fails_often]
        if normalised and not scaled:
            # One of them may exaggerate its short jobs.
            return _at_most(app, min(claim.claimed_credit or 0.0 for claim in normalised), GrantRule.MINIMUM)
        if scaled:
            return _at_most(app, sum(scaled) / len(scaled), GrantRule.MEAN_OF_SCALED)
    if not count:
        return _at_most(app, credit_of(default_pfc(app, workunit)), GrantRule.DEFAULT)
    if app.replica_rule is ReplicaRule.MINIMUM and app.credit_system is not CreditSystem.CREDITNEW:
        return _at_most(app, least, GrantRule.MINIMUM)
    return _at_most(app, total / count, GrantRule.MEAN_OF_NORMAL)


def _single(app: AppFacts, workunit: WorkunitFacts, claim: Explanation) -> Grant:
    """Grant the claim of a job that nobody else ran, up to the lead that its record is allowed."""
    credit = _alone(claim, workunit)
    is_ahead = credit < (claim.claimed_credit or 0.0)
    return _at_most(app, credit, GrantRule.SINGLE_AHEAD if is_ahead else GrantRule.SINGLE_CLAIM)


def _alone(claim: Explanation, workunit: WorkunitFacts) -> float:
    """Return the credit of a claim that no other is compared with."""
    credit = claim.claimed_credit or 0.0
    most = most_pfc(claim, workunit)
    if most is not None and credit > credit_of(most) * (1 + 1e-9):
        return credit_of(most)
    return credit


def late_grant(canonical_credit: float) -> Grant:
    """Return the grant for a valid result that comes after its workunit was decided: the same as the others'; NaN:
    nothing.
    """
    credit = 0.0 if canonical_credit != canonical_credit else canonical_credit
    return Grant(credit, GrantRule.LATE_GETS_CANONICAL)


def due(grant: Grant, result: ResultFacts) -> float:
    """Return the part of the grant that this result has not yet received as partial credit."""
    return max(0.0, grant.credit - result.partial_credit)


def _at_most(app: AppFacts, credit: float, rule: GrantRule) -> Grant:
    most = app.rules.max_granted_credit
    if most is None or most > MAX_CREDIT:
        most = MAX_CREDIT
    if credit > most:
        return Grant(most, rule, True)
    # A value below 0 or not a number only comes from broken facts; the workunit must be decided nevertheless.
    return Grant(credit if credit >= LEAST_CREDIT else 0.0, rule)
