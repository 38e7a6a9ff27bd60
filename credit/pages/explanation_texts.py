"""A claim and a grant in plain words, step by step, for the page that says why a job was granted its credit. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from credit.engine.explanation import DEFAULT_RULES, ClaimRule, Explanation, Grant, GrantRule
from credit.engine.facts import WorkunitFacts


@dataclass(frozen=True, slots=True)
class Step:
    """One line of an explanation: the number's name, the number (None: there is none), and its meaning."""

    label: str
    number: float | None
    sentence: str


DEFAULT_REASONS: Final = {
    ClaimRule.NO_VERSION: "The site does not know which program computed this job, so its run time cannot be used.",
    ClaimRule.ABOVE_BOUND: (
        "The count is above the limit for such a job, so it fails the sanity check. It is not used and changes no "
        "average. The computer has to prove itself again."
    ),
    ClaimRule.IMPOSSIBLE: (
        "The reported run time or speed is impossible. It changes no average, and the computer has to prove itself "
        "again."
    ),
    ClaimRule.ZERO_ELAPSED: "The computer reported a run time of zero, so credit cannot be computed from it.",
    ClaimRule.ANONYMOUS_DEFAULT: (
        "The computer uses its owner's own program, and too little is known yet to compare it with the app's versions."
    ),
    ClaimRule.OVERLONG: (
        "The reported run time is longer than the job was out. It was cut, and such a job claims no more than the "
        "default."
    ),
    ClaimRule.UNSCALED_VERSION: (
        "This version has no factor yet: too few of its jobs are known, and no older version had one. So the claim is "
        "approximate."
    ),
}
SCALE_REASONS: Final = {
    ClaimRule.VERSION_ONLY: (
        "There is no factor for this computer, because it or the version has too few valid jobs yet. So the claim is "
        "approximate."
    ),
    ClaimRule.HOST_ONLY: "The version has no factor: there is nothing to compare it with. So the claim is approximate.",
    ClaimRule.UNSCALED: (
        "Neither the version nor the computer has a factor yet: too few jobs are known. So the claim is approximate."
    ),
}
RAW_SENTENCES: Final = {
    ClaimRule.PEAK_FLOPS: "The processor's benchmark × CPU time.",
    ClaimRule.BENCHMARK: "The app did not count FLOPs, so the processor's benchmark × CPU time is used instead.",
    ClaimRule.FLOPS_COUNTED: "The FLOPs that the app counted.",
    ClaimRule.FLOPS_PER_CPU_SEC: "The FLOPs per second that the app measured × CPU time.",
    ClaimRule.FIXED_PER_FLOP: "The job's estimated FLOPs.",
}
GRANT_SENTENCES: Final = {
    GrantRule.SINGLE_CLAIM: "No other computer computed this job, so its claim is granted.",
    GrantRule.MEAN_OF_NORMAL: "All valid results get the mean of those claims that are not approximate.",
    GrantRule.DEFAULT: "All claims are approximate, so all valid results get the claim of an average job of this size.",
    GrantRule.PEGGED_MEAN: (
        "All valid results get a weighted mean of the claims. Claims near the estimate count most, and claims that are "
        "not approximate are preferred."
    ),
    GrantRule.LATE_GETS_CANONICAL: (
        "The job was already decided when this result arrived. It gets the same credit as the others; its own claim "
        "only counts in the averages."
    ),
    GrantRule.MINIMUM: "All valid results get the smallest of their claims.",
    GrantRule.FIXED: "Every valid result of this app gets a fixed amount.",
    GrantRule.MEAN_OF_SCALED: (
        "All claims are approximate, so all valid results get the mean of those that have both factors: of the version "
        "and of the computer."
    ),
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

    It includes run time that was credited already. Only the claim's FLOPs are stored; dividing them may round in the
    last digit, which is no cut. If the FLOPs do not come from the run time, the reported run time is returned.
    """
    is_of_run_time = ClaimRule.ANONYMOUS_DEFAULT <= rule < ClaimRule.PEAK_FLOPS
    if not is_of_run_time or raw_pfc is None or not peak_flops or reported_secs is None:
        return reported_secs
    used = raw_pfc / peak_flops + partial_elapsed_secs
    return used if used < reported_secs * (1 - 1e-9) else reported_secs


def claim_steps(
    claim: Explanation,
    workunit: WorkunitFacts,
    partial_credit: float = 0.0,
    reported_secs: float | None = None,
    *,
    is_received: bool = False,
) -> list[Step]:
    """The steps of this claim, from the run time to Cobblestones; ``reported_secs`` shows whether it was cut.

    ``is_received``: the version's factor is that of other projects.
    """
    rule = claim.claim_rule
    if rule is ClaimRule.LEFT_OUT:
        return [Step("Claim", None, "The site no longer has this version, so this result makes no claim.")]
    steps = []
    if claim.elapsed_secs is not None and rule < ClaimRule.PEAK_FLOPS:
        sentence = "Credit is computed from this run time."
        if reported_secs is not None and reported_secs > claim.elapsed_secs:
            sentence = f"The time that the job was out. The computer reported more than that: {reported_secs:.6g} s."
        steps.append(Step("Run time (s)", claim.elapsed_secs, sentence))
    if claim.raw_pfc is not None:
        sentence = RAW_SENTENCES.get(rule, "Run time × peak speed of the processors that the job was given.")
        if rule is not ClaimRule.FIXED_PER_JOB:
            steps.append(Step("FLOPs before scaling", claim.raw_pfc, sentence))
    if rule in DEFAULT_RULES:
        steps += _default_steps(claim, workunit)
    else:
        steps += _scale_steps(claim, is_received)
    if partial_credit and has_partial_credit(rule):
        steps.append(Step("Credited while it ran", partial_credit, "Already credited by trickle-up messages."))
    if rule is ClaimRule.FIXED_PER_JOB:
        steps.append(Step("Claim (credit)", claim.claimed_credit, "A fixed amount per job."))
    else:
        sentence = "200 credits are a day's work of a processor of 1 GFLOPS: FLOPs × 200 / 86,400e9."
        steps.append(Step("Claim (credit)", claim.claimed_credit, sentence))
    return steps


def _default_steps(claim: Explanation, workunit: WorkunitFacts) -> list[Step]:
    if claim.min_avg_pfc is None:
        sentence = "So it claims the job's estimated FLOPs."
    else:
        sentence = f"So it claims the default: the app's average {claim.min_avg_pfc:.6g} × the job's estimate."
    return [
        Step("Estimate (FLOPs)", workunit.fpops_est, DEFAULT_REASONS[claim.claim_rule]),
        Step("Claim (FLOPs)", claim.claimed_pfc, sentence),
    ]


def _scale_steps(claim: Explanation, is_received: bool) -> list[Step]:
    rule = claim.claim_rule
    steps = []
    if claim.version_scale is not None:
        if rule >= ClaimRule.PEAK_FLOPS:
            sentence = "A factor set by this project."
        elif is_received:
            sentence = (
                "The average of such versions at other projects: this app has no version for CPUs to compare this one "
                "with."
            )
        else:
            sentence = "Makes versions of different efficiency claim alike."
        steps.append(Step("× factor of the version", claim.version_scale, sentence))
    if claim.host_scale is not None:
        steps.append(Step("× factor of the computer", claim.host_scale, _host_sentence(claim)))
    if (reason := SCALE_REASONS.get(rule)) is not None:
        steps.append(Step("Approximate", None, reason))
    elif claim.is_approximate and rule < ClaimRule.PEAK_FLOPS and not claim.on_probation:
        steps.append(Step("Approximate", None, "The numbers are too uncertain to affect the credit of others."))
    if claim.on_probation:
        sentence = (
            "Nothing shows yet that the computer does not pick its jobs: too little is known about it, or too many of "
            "its recent jobs failed. As long as that is so, its factor is at most 1."
        )
        steps.append(Step("On probation", None, sentence))
    if rule is not ClaimRule.FIXED_PER_JOB:
        steps.append(Step("Claim (FLOPs)", claim.claimed_pfc, "The result of the steps above."))
    return steps


def _host_sentence(claim: Explanation) -> str:
    """The origin of the host's factor: the average of all, or the app's, divided by the host's own."""
    own = f"this computer's own average {claim.host_pfc_avg:.6g} ({claim.host_pfc_n} jobs)"
    if claim.claim_rule is ClaimRule.ANONYMOUS_NORMALISED:
        return f"The app's average {claim.min_avg_pfc or 0.0:.6g} divided by {own}, within limits."
    version = f"The version's average {claim.version_pfc_avg:.6g} ({claim.version_pfc_n} jobs)"
    whole = (claim.version_pfc_avg or 0.0) / (claim.host_pfc_avg or 1.0)
    if not claim.on_probation and (claim.host_scale or 0.0) < whole * (1 - 1e-9):
        limits = "The computer's earlier jobs do not support a higher factor, or the app's limit was reached."
        return f"{version} divided by {own}, reduced. {limits}"
    return f"{version} divided by {own}, within limits."


def grant_steps(grant: Grant, due: float | None = None) -> list[Step]:
    """The steps from a workunit's claims to its credit; ``due``: this result's part, after its partial credit."""
    steps = [Step("Granted (credit)", grant.credit, GRANT_SENTENCES[grant.rule])]
    if grant.is_cut:
        steps.insert(0, Step("Maximum (credit)", grant.credit, "The app's maximum for one job cut the grant."))
    if due is not None and due != grant.credit:
        steps.append(Step("Granted now (credit)", due, "The rest, after the credit granted while it ran."))
    return steps
