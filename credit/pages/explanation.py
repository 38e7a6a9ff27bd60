"""Explanations of a result's claim and grant, from the columns that the validator stored."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from credit.engine.explanation import DEFAULT_RULES, ClaimRule, Explanation, Grant, GrantRule, grant_rule_of
from credit.models import AppVersion, PartState, Result, ResultPart, Workunit
from credit.models.claims import StoredClaim
from credit.pages.explanation_texts import Step, claim_steps, grant_steps, used_elapsed_secs
from credit.statistics.facts import app_facts, workunit_facts


@dataclass(frozen=True, slots=True)
class StoredExplanation:
    """The steps to the claim and on to the grant, and the claim as stored (credits)."""

    steps: list[Step]
    claimed_credit: float | None
    granted_credit: float | None
    is_approximate: bool


@dataclass(frozen=True, slots=True)
class ExplainedPart:
    """A part of a job that was credited while it ran, and the steps to its credit."""

    part: ResultPart
    steps: list[Step]

    @property
    def is_taken_back(self) -> bool:
        return self.part.state == PartState.TAKEN_BACK


def stored_explanation(result: Result) -> Explanation | None:
    """Return the claim as the validator stored it; None if there is none."""
    if result.claim_rule is None:
        return None
    return _claim(
        result,
        used_elapsed_secs(
            ClaimRule(result.claim_rule),
            result.raw_pfc,
            result.peak_flops,
            result.elapsed_secs,
            result.partial_elapsed_secs,
        ),
    )


def _claim(stored: StoredClaim, elapsed_secs: float | None) -> Explanation:
    assert stored.claim_rule is not None  # checked by the caller, or by the table
    return Explanation(
        claim_rule=ClaimRule(stored.claim_rule),
        raw_pfc=stored.raw_pfc,
        claimed_pfc=stored.claimed_pfc,
        claimed_credit=stored.claimed_credit,
        is_approximate=bool(stored.is_approximate),
        version_scale=stored.version_scale,
        host_scale=stored.host_scale,
        on_probation=bool(stored.on_probation),
        version_pfc_n=stored.version_pfc_n,
        version_pfc_avg=stored.version_pfc_avg,
        host_pfc_n=stored.host_pfc_n,
        host_pfc_avg=stored.host_pfc_avg,
        min_avg_pfc=stored.min_avg_pfc,
        elapsed_secs=elapsed_secs,
    )


def _is_received(version: AppVersion | None, claim: Explanation) -> bool:
    """Whether the claim's factor is the one set for the version, from other projects."""
    return version is not None and claim.version_scale == version.cross_project_scale is not None


def explain_parts(parts: Iterable[ResultPart], result: Result, workunit: Workunit) -> list[ExplainedPart]:
    """Explain what was credited while the job ran."""
    app, explained = app_facts(result.app), []
    for part in parts:
        claim = _claim(part, part.to_secs - part.from_secs)
        is_cut = part.credit < (claim.claimed_credit or 0.0) * (1 - 1e-12)
        is_received = _is_received(result.app_version, claim)
        steps = claim_steps(claim, workunit_facts(workunit), is_received=is_received, app=app)
        explained.append(ExplainedPart(part, steps + grant_steps(Grant(part.credit, GrantRule.PARTIAL, is_cut))))
    return explained


def explain(result: Result, workunit: Workunit) -> StoredExplanation | None:
    """Return the steps that the page shows; None until there is a claim."""
    claim = stored_explanation(result)
    if claim is None:
        return None
    is_received = _is_received(result.app_version, claim)
    facts = workunit_facts(workunit)
    steps = claim_steps(
        claim,
        facts,
        result.partial_credit,
        result.elapsed_secs,
        is_received=is_received,
        app=app_facts(result.app),
    )
    if result.grant_rule is not None and result.granted_credit is not None:
        rule, is_cut = grant_rule_of(result.grant_rule)
        due = max(0.0, result.granted_credit - result.partial_credit)
        steps += grant_steps(Grant(result.granted_credit, rule, is_cut), due, claim.min_avg_pfc)
    # The steps of a default claim already say why the result's own numbers were not used.
    is_approximate = claim.is_approximate and claim.claim_rule not in DEFAULT_RULES
    return StoredExplanation(steps, result.claimed_credit, result.granted_credit, is_approximate)
