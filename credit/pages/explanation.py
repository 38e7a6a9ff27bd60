"""Why a result claimed and was granted what it was, read from the columns that the validator stored."""

from __future__ import annotations

from dataclasses import dataclass

from credit.engine.explanation import DEFAULT_RULES, ClaimRule, Explanation, Grant, grant_rule_of
from credit.models import Result, Workunit
from credit.pages.explanation_texts import Step, claim_steps, grant_steps, used_elapsed_secs
from credit.statistics.facts import workunit_facts


@dataclass(frozen=True, slots=True)
class StoredExplanation:
    """The steps to the claim and from there to the grant, and the claim as it was stored (credits)."""

    steps: list[Step]
    claimed_credit: float | None
    granted_credit: float | None
    is_approximate: bool


def stored_explanation(result: Result) -> Explanation | None:
    """The claim as the validator stored it; None if none was made."""
    if result.claim_rule is None:
        return None
    rule = ClaimRule(result.claim_rule)
    return Explanation(
        claim_rule=rule,
        raw_pfc=result.raw_pfc,
        claimed_pfc=result.claimed_pfc,
        claimed_credit=result.claimed_credit,
        is_approximate=bool(result.is_approximate),
        version_scale=result.version_scale,
        host_scale=result.host_scale,
        on_probation=bool(result.on_probation),
        version_pfc_n=result.version_pfc_n,
        version_pfc_avg=result.version_pfc_avg,
        host_pfc_n=result.host_pfc_n,
        host_pfc_avg=result.host_pfc_avg,
        min_avg_pfc=result.min_avg_pfc,
        elapsed_secs=used_elapsed_secs(
            rule, result.raw_pfc, result.peak_flops, result.elapsed_secs, result.partial_elapsed_secs
        ),
    )


def explain(result: Result, workunit: Workunit) -> StoredExplanation | None:
    """The steps that the page shows; None as long as nothing was claimed."""
    claim = stored_explanation(result)
    if claim is None:
        return None
    steps = claim_steps(claim, workunit_facts(workunit), result.partial_credit, result.elapsed_secs)
    if result.grant_rule is not None and result.granted_credit is not None:
        rule, is_cut = grant_rule_of(result.grant_rule)
        due = max(0.0, result.granted_credit - result.partial_credit)
        steps += grant_steps(Grant(result.granted_credit, rule, is_cut), due)
    # For a default claim, the steps already say why the result's own numbers were not used.
    is_approximate = claim.is_approximate and claim.claim_rule not in DEFAULT_RULES
    return StoredExplanation(steps, result.claimed_credit, result.granted_credit, is_approximate)
