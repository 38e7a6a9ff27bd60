"""Partial credit by trickle-up messages, for jobs that run for months (credit document, "Peak FLOP Count", notes).

A trickle-up message names the job's run time so far, and claims credit for what is new in it. The final report claims
the rest, and the statistics get one sample of the whole job. All partial claims together stay within the workunit's
bound. A message whose claim would be the default grants nothing; the final report does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

from credit.engine.claims.deployed import deployed_claim, effective_peak_flops
from credit.engine.claims.published import published_claim
from credit.engine.explanation import ClaimRule, Explanation, Grant, GrantRule
from credit.engine.facts import AppFacts, CreditSystem, ResultFacts, WorkunitFacts
from credit.engine.rules import MAX_CREDIT, credit_of


@dataclass(slots=True)
class PartialClaim:
    """The grant for a trickle-up message, and how much of the run time is credited with it."""

    grant: Grant
    credited_elapsed_secs: float
    claim: Explanation


def claim_partial(
    app: AppFacts, workunit: WorkunitFacts, result: ResultFacts, elapsed_secs: float, now: float
) -> PartialClaim | None:
    """The grant for a trickle-up message that names this run time, or None. Changes nothing.

    ``result`` is the job in progress with what was credited already; its run time is not read. Only for the third
    credit system: the others count what is known at the end.
    """
    if app.credit_system is not CreditSystem.CREDITNEW or not 0 <= elapsed_secs < inf:
        return None
    peak, _ = effective_peak_flops(result, app.rules)
    if not 0 < peak < inf:
        return None
    elapsed = min(elapsed_secs, now - result.sent_at, workunit.fpops_bound / peak)
    if not elapsed > result.partial_elapsed_secs:
        return None
    so_far = replace(result, elapsed_secs=elapsed, received_at=now, partial_credit=0.0)
    # Dividing and multiplying by the peak may round to just above the bound.
    padded = replace(workunit, fpops_bound=workunit.fpops_bound * (1 + 1e-12))
    deployed = app.rules.is_deployed
    claim = deployed_claim(app, padded, so_far) if deployed else published_claim(app, padded, so_far, now)
    if claim.claim_rule < ClaimRule.ANONYMOUS_NORMALISED or not claim.claimed_pfc:
        return None
    credit = credit_of(claim.claimed_pfc)
    room = max(0.0, min(app.rules.max_granted_credit or MAX_CREDIT, MAX_CREDIT) - result.partial_credit)
    return PartialClaim(Grant(min(credit, room), GrantRule.PARTIAL, credit > room), elapsed, claim)
