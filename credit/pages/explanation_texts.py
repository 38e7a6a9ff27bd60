"""A claim and a grant in plain words, step by step, for the page that says why a job was granted its credit. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from credit.engine.explanation import DEFAULT_RULES, ClaimRule, Explanation, Grant, GrantRule
from credit.engine.facts import WorkunitFacts


@dataclass(frozen=True, slots=True)
class Step:
    """One line of an explanation: what the number is, the number (None: there is none), and what it means."""

    label: str
    number: float | None
    sentence: str


DEFAULT_REASONS: Final = {
    ClaimRule.NO_VERSION: "The site does not know which program computed this job, so its run time says nothing.",
    ClaimRule.ABOVE_BOUND: (
        "The count is above the most that such a job may use. It fails the sanity check: it is not used, moves no "
        "average, and the computer has to prove itself again."
    ),
    ClaimRule.IMPOSSIBLE: (
        "The run time or the speed that was reported is none that a computer can have. It moves no average, and the "
        "computer has to prove itself again."
    ),
    ClaimRule.ZERO_ELAPSED: "A run time of zero was reported, so there is nothing to compute credit from.",
    ClaimRule.ANONYMOUS_DEFAULT: (
        "The computer uses a program of its own, and too little is known yet to compare it with the app's versions."
    ),
    ClaimRule.OVERLONG: (
        "The reported run time is longer than the job was out. It was cut, and such a job claims no more than the "
        "default."
    ),
}
SCALE_REASONS: Final = {
    ClaimRule.VERSION_ONLY: (
        "There is no factor for this computer: it, or the version, has too few valid jobs yet. So the claim is "
        "approximate."
    ),
    ClaimRule.HOST_ONLY: "The version has no factor: there is nothing to compare it with. So the claim is approximate.",
    ClaimRule.UNSCALED: (
        "Neither the version nor the computer has a factor yet: too few jobs are known. So the claim is approximate."
    ),
}
RAW_SENTENCES: Final = {
    ClaimRule.PEAK_FLOPS: "The processor's benchmark × CPU time.",
    ClaimRule.BENCHMARK: "The app did not count FLOPs, so the processor's benchmark × CPU time stands for them.",
    ClaimRule.FLOPS_COUNTED: "The FLOPs that the app counted.",
    ClaimRule.FLOPS_PER_CPU_SEC: "The FLOPs per second that the app measured × CPU time.",
    ClaimRule.FIXED_PER_FLOP: "The FLOPs that the job was estimated at.",
}
GRANT_SENTENCES: Final = {
    GrantRule.SINGLE_CLAIM: "Nobody else computed this job, so its claim is granted.",
    GrantRule.MEAN_OF_NORMAL: "All valid results get the mean of those claims that are not approximate.",
    GrantRule.DEFAULT: "All claims are approximate, so all valid results get what an average job of this size claims.",
    GrantRule.PEGGED_MEAN: (
        "All valid results get a mean of the claims in which those near the estimate count most; claims that are not "
        "approximate go first."
    ),
    GrantRule.LATE_GETS_CANONICAL: (
        "The job was already decided when this result came. It gets the same as the others; its own claim only "
        "serves the averages."
    ),
    GrantRule.MINIMUM: "All valid results get the smallest of their claims.",
    GrantRule.FIXED: "Every valid result of this app gets a fixed amount.",
    GrantRule.PARTIAL: "Credit for a part of a long job, granted while it runs.",
}


def has_partial_credit(rule: ClaimRule) -> bool:
    """Whether a claim by this rule includes partial credit: the other systems count whole jobs."""
    return ClaimRule.ANONYMOUS_NORMALISED <= rule < ClaimRule.PEAK_FLOPS


def used_elapsed_secs(
    rule: ClaimRule,
    raw_pfc: float | None,
    peak_flops: float | None,
    reported_secs: float | None,
    partial_elapsed_secs: float = 0.0,
) -> float | None:
    """The run time that a stored claim used: less than reported if it was cut.

    What was credited already is part of it. Only the claim's FLOPs are stored; dividing them may round in the last
    digit, which is no cut. Where they are not of the run time, it is the one reported.
    """
    is_of_run_time = ClaimRule.ANONYMOUS_DEFAULT <= rule < ClaimRule.PEAK_FLOPS
    if not is_of_run_time or raw_pfc is None or not peak_flops or reported_secs is None:
        return reported_secs
    used = raw_pfc / peak_flops + partial_elapsed_secs
    return used if used < reported_secs * (1 - 1e-9) else reported_secs


def claim_steps(
    claim: Explanation, workunit: WorkunitFacts, partial_credit: float = 0.0, reported_secs: float | None = None
) -> list[Step]:
    """How this claim came about, from the run time to Cobblestones; ``reported_secs`` tells that it was cut."""
    rule = claim.claim_rule
    if rule is ClaimRule.LEFT_OUT:
        return [Step("Claim", None, "The version is not known any more: this result claims nothing of its own.")]
    steps = []
    if claim.elapsed_secs is not None and rule < ClaimRule.PEAK_FLOPS:
        sentence = "The run time that credit is computed from."
        if reported_secs is not None and reported_secs > claim.elapsed_secs:
            sentence = f"The time that the job was out: the {reported_secs:.6g} s reported are more than that."
        steps.append(Step("Run time (s)", claim.elapsed_secs, sentence))
    if claim.raw_pfc is not None:
        sentence = RAW_SENTENCES.get(rule, "Run time × peak speed of the processors that the job was given.")
        if rule is not ClaimRule.FIXED_PER_JOB:
            steps.append(Step("FLOPs before scaling", claim.raw_pfc, sentence))
    if rule in DEFAULT_RULES:
        steps += _default_steps(claim, workunit)
    else:
        steps += _scale_steps(claim)
    if partial_credit and has_partial_credit(rule):
        steps.append(Step("Credited while it ran", partial_credit, "Trickles brought this much already."))
    if rule is ClaimRule.FIXED_PER_JOB:
        steps.append(Step("Claim (credit)", claim.claimed_credit, "A fixed amount per job."))
    else:
        sentence = "200 credits are a day's work of a processor of 1 GFLOPS: FLOPs × 200 / 86,400e9."
        steps.append(Step("Claim (credit)", claim.claimed_credit, sentence))
    return steps


def _default_steps(claim: Explanation, workunit: WorkunitFacts) -> list[Step]:
    if claim.min_avg_pfc is None:
        sentence = "So it claims the FLOPs that the job was estimated at."
    else:
        sentence = f"So it claims the default: the app's average {claim.min_avg_pfc:.6g} × the job's estimate."
    return [
        Step("Estimate (FLOPs)", workunit.fpops_est, DEFAULT_REASONS[claim.claim_rule]),
        Step("Claim (FLOPs)", claim.claimed_pfc, sentence),
    ]


def _scale_steps(claim: Explanation) -> list[Step]:
    rule = claim.claim_rule
    steps = []
    if claim.version_scale is not None:
        if rule >= ClaimRule.PEAK_FLOPS:
            sentence = "The factor that this project sets."
        else:
            sentence = "Makes versions of different efficiency claim alike."
        steps.append(Step("× factor of the version", claim.version_scale, sentence))
    if claim.host_scale is not None:
        steps.append(Step("× factor of the computer", claim.host_scale, _host_sentence(claim)))
    if (reason := SCALE_REASONS.get(rule)) is not None:
        steps.append(Step("Approximate", None, reason))
    elif claim.is_approximate and rule < ClaimRule.PEAK_FLOPS and not claim.on_probation:
        steps.append(Step("Approximate", None, "The numbers are not sure enough to set what others are granted."))
    if claim.on_probation:
        sentence = "The computer has still to show that it does not pick its jobs. Until then its factor is at most 1."
        steps.append(Step("On probation", None, sentence))
    if rule is not ClaimRule.FIXED_PER_JOB:
        steps.append(Step("Claim (FLOPs)", claim.claimed_pfc, "The result of the steps above."))
    return steps


def _host_sentence(claim: Explanation) -> str:
    """Where the host's factor comes from: the average of all, or the app's, over the host's own."""
    own = f"this computer's own average {claim.host_pfc_avg:.6g} ({claim.host_pfc_n} jobs)"
    if claim.claim_rule is ClaimRule.ANONYMOUS_NORMALISED:
        return f"The app's average {claim.min_avg_pfc or 0.0:.6g} over {own}, within limits."
    return f"The version's average {claim.version_pfc_avg:.6g} ({claim.version_pfc_n} jobs) over {own}, within limits."


def grant_steps(grant: Grant, due: float | None = None) -> list[Step]:
    """How the claims of a workunit became its credit; ``due`` is this result's part of it, after its partial credit."""
    steps = [Step("Granted (credit)", grant.credit, GRANT_SENTENCES[grant.rule])]
    if grant.is_cut:
        steps.insert(0, Step("Maximum (credit)", grant.credit, "The app's maximum for one job cut the grant."))
    if due is not None and due != grant.credit:
        steps.append(Step("Granted now (credit)", due, "What is left after the credit granted while it ran."))
    return steps
