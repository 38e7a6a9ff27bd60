"""The claim and grant of a task in plain words, step by step, for the page that explains its credit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from credit.engine.explanation import DEFAULT_RULES, ClaimRule, Explanation, Grant, GrantRule
from credit.engine.facts import AppFacts, WorkunitFacts
from credit.engine.rules import Rules
from portal.templatetags.display import localised


@dataclass(frozen=True, slots=True)
class Step:
    """One line of an explanation: the number's name, the number (None if there is none), and its meaning."""

    label: str
    number: float | None
    sentence: str


DEFAULT_REASONS: Final = {
    ClaimRule.UNKNOWN_PEAK: _(
        "The computer’s BOINC client reports no speed for its GPU, or one that no GPU has, so the run time cannot be "
        "used for credit. A newer driver or client may help."
    ),
    ClaimRule.NO_VERSION: _(
        "The site does not know which program ran this task, so its run time cannot be used for credit."
    ),
    ClaimRule.ABOVE_BOUND: _(
        "The count exceeds the limit for such a task and fails the sanity check. It is not used and changes no average."
    ),
    ClaimRule.IMPOSSIBLE: _("The reported run time or speed is impossible. It changes no average."),
    ClaimRule.ZERO_ELAPSED: _("The computer reported a run time of zero, so credit cannot be calculated from it."),
    ClaimRule.ANONYMOUS_DEFAULT: _(
        "The computer uses its owner’s own program, and too little is known yet to compare it with the app’s versions."
    ),
    ClaimRule.OVERLONG: _(
        "The reported run time is longer than the time between sending and report. It was cut, and such a task claims "
        "no more than the default."
    ),
    ClaimRule.UNSCALED_VERSION: _(
        "This version has no factor yet: it has too few samples, and no older version had a factor. The claim is "
        "therefore approximate."
    ),
    ClaimRule.FIRST_JOBS: _(
        "This computer has too few valid tasks with the processors and the speed that it reports now. Until it has a "
        "factor, its tasks claim no more than an average task of this size."
    ),
}
SCALE_REASONS: Final = {
    ClaimRule.VERSION_ONLY: _(
        "This computer has no factor, because the computer or the version has too few valid tasks so far. The claim is "
        "therefore approximate."
    ),
    ClaimRule.HOST_ONLY: _(
        "The version has no factor, because there is nothing to compare it with. The claim is therefore approximate."
    ),
    ClaimRule.UNSCALED: _(
        "Neither the version nor the computer has a factor yet, because there are too few samples. The claim is "
        "therefore approximate."
    ),
}
RAW_SENTENCES: Final = {
    ClaimRule.PEAK_FLOPS: _("The processor’s benchmark × CPU time."),
    ClaimRule.BENCHMARK: _("The app did not count FLOPs, so the processor’s benchmark × CPU time is used instead."),
    ClaimRule.FLOPS_COUNTED: _("The FLOPs counted by the app."),
    ClaimRule.FLOPS_PER_CPU_SEC: _("The FLOPs per second measured by the app × CPU time."),
    ClaimRule.RUN_TIME: _("Run time, up to the app’s limit, × peak speed of the processors used by the task."),
    ClaimRule.FIXED_PER_FLOP: _("The estimated FLOPs of the task."),
}
AMOUNT_SENTENCES: Final = {
    ClaimRule.FIXED_PER_JOB: _("A fixed amount per task."),
    ClaimRule.GIVEN_WITH_JOB: _("The amount that the project gave this task when it was submitted."),
    ClaimRule.ASSIGNED: _("The amount that the project assigned to this result when its output was checked."),
}
"""Claims that are an amount of credit, not of FLOPs."""
GRANT_SENTENCES: Final = {
    GrantRule.SINGLE_CLAIM: _("No other computer ran this workunit, so the claim is granted."),
    GrantRule.MEAN_OF_NORMAL: _("All valid results get the mean of the claims that are not approximate."),
    GrantRule.DEFAULT: _(
        "All claims are approximate, so all valid results get the claim of an average task of this size."
    ),
    GrantRule.PEGGED_MEAN: _(
        "All valid results get a weighted mean of the claims. Claims near the estimate count most, and claims that are "
        "not approximate are preferred."
    ),
    GrantRule.LATE_GETS_CANONICAL: _(
        "The workunit was already validated when this result arrived. It gets the same credit as the others; its own "
        "claim only counts in the averages."
    ),
    GrantRule.MINIMUM: _("All valid results get the smallest of their claims."),
    GrantRule.SINGLE_AHEAD: _(
        "No other computer ran this workunit, and this computer’s claims have exceeded those of usual tasks by as much "
        "as they may in all. The rest of the claim is not granted."
    ),
    GrantRule.UNCONFIRMED_PAIR: _(
        "The volunteers whose results agree confirm each other more often than chance would, and nobody else has "
        "confirmed these results in time. All valid results get the smallest of their claims, and no more than a "
        "result that nobody else computed."
    ),
    GrantRule.UNCONFIRMED_SINGLE: _(
        "Another computer had to confirm this result, and none has done so in time. It gets its claim, but no more "
        "than that of an average task of this size."
    ),
    GrantRule.OWN: _(
        "The person who submitted this workunit reserved it for themself, a computer of theirs or their team. Nobody "
        "else can confirm what it brings, so it brings no credit."
    ),
    GrantRule.GIVEN: _("Every valid result gets the amount that the project set for this workunit."),
    GrantRule.FIXED: _("Every valid result of this app gets a fixed amount."),
    GrantRule.MEAN_OF_SCALED: _(
        "All claims are approximate, so all valid results get the mean of the claims that have both factors, of the "
        "version and of the computer."
    ),
    GrantRule.CARRIED_OVER: _("The server that this project moved from granted it."),
    GrantRule.PARTIAL: _("Credit for part of a long task, granted while it runs."),
}


def has_partial_credit(rule: ClaimRule) -> bool:
    """Whether a claim by this rule includes partial credit; the other systems count whole jobs."""
    return ClaimRule.ANONYMOUS_NORMALISED <= rule < ClaimRule.PEAK_FLOPS


def used_elapsed_secs(
    rule: ClaimRule,
    raw_pfc: float | None,
    peak_flops: float | None,
    reported_secs: float | None,
    partial_elapsed_secs: float = 0.0,
) -> float | None:
    """Return the run time that a stored claim used: less than reported if it was cut.

    It includes run time that was credited already. Only the claim's FLOPs are stored; dividing them may round in the
    last digit, which does not count as a cut. If the FLOPs do not come from the run time, the reported run time is
    returned.
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
    app: AppFacts | None = None,
) -> list[Step]:
    """Return the steps of this claim, from run time to Cobblestones; ``reported_secs`` shows whether it was cut.

    ``is_received``: the version's factor is that of other projects. ``app``: the app with its current settings; without
    it, the probation that follows a false report is not mentioned.
    """
    rule = claim.claim_rule
    if rule is ClaimRule.LEFT_OUT:
        return [
            Step(gettext("Claim"), None, gettext("The site no longer has this version, so this result makes no claim."))
        ]
    steps = _raw_steps(claim, reported_secs)
    steps += _default_steps(claim, workunit, app) if rule in DEFAULT_RULES else _scale_steps(claim, is_received, app)
    if partial_credit and has_partial_credit(rule):
        sentence = gettext("Already granted while the task ran, through trickle-up messages.")
        steps.append(Step(gettext("Credited while running"), partial_credit, sentence))
    if rule in AMOUNT_SENTENCES:
        sentence = str(AMOUNT_SENTENCES[rule])
    else:
        sentence = gettext("200 credits are one day’s work of a 1 GFLOPS processor: FLOPs × 200 / 86,400e9.")
    steps.append(Step(gettext("Claim (credit)"), claim.claimed_credit, sentence))
    return steps


def _raw_steps(claim: Explanation, reported_secs: float | None) -> list[Step]:
    rule = claim.claim_rule
    steps = []
    if claim.elapsed_secs is not None and rule < ClaimRule.PEAK_FLOPS:
        sentence = gettext("Run time used in the calculation.")
        if reported_secs is not None and reported_secs > claim.elapsed_secs:
            sentence = gettext(
                "The time between sending and report. The computer reported more than that: %(secs)s s."
            ) % {"secs": localised(f"{reported_secs:.6g}")}
        steps.append(Step(gettext("Run time (s)"), claim.elapsed_secs, sentence))
    if claim.raw_pfc is not None and rule not in AMOUNT_SENTENCES:
        usual = gettext("Run time × peak speed of the processors used by the task.")
        sentence = str(RAW_SENTENCES.get(rule, usual))
        steps.append(Step(gettext("FLOPs before scaling"), claim.raw_pfc, sentence))
    return steps


def _default_steps(claim: Explanation, workunit: WorkunitFacts, app: AppFacts | None) -> list[Step]:
    reason = str(DEFAULT_REASONS[claim.claim_rule])
    if claim.claim_rule in (ClaimRule.ABOVE_BOUND, ClaimRule.IMPOSSIBLE) and app is not None and app.host_scale_check:
        reason += " " + gettext("The computer is put on probation again.")
    if claim.min_avg_pfc is None:
        sentence = gettext("The claim is therefore the estimated FLOPs of the task.")
    else:
        sentence = gettext(
            "The claim is therefore the default: the app’s average of %(average)s × the task’s estimate."
        ) % {"average": localised(f"{claim.min_avg_pfc:.6g}")}
    return [
        Step(gettext("Estimate (FLOPs)"), workunit.fpops_est, reason),
        Step(gettext("Claim (FLOPs)"), claim.claimed_pfc, sentence),
    ]


def _scale_steps(claim: Explanation, is_received: bool, app: AppFacts | None) -> list[Step]:
    rule = claim.claim_rule
    steps = []
    if claim.version_scale is not None:
        sentence = _version_sentence(rule, is_received)
        steps.append(Step(gettext("× factor of the version"), claim.version_scale, sentence))
    if claim.host_scale is not None:
        steps.append(Step(gettext("× factor of the computer"), claim.host_scale, _host_sentence(claim, app)))
    if (reason := SCALE_REASONS.get(rule)) is not None:
        steps.append(Step(gettext("Approximate"), None, str(reason)))
    elif claim.is_approximate and rule < ClaimRule.PEAK_FLOPS and not claim.on_probation:
        sentence = gettext("The numbers are too uncertain to affect the credit of others.")
        steps.append(Step(gettext("Approximate"), None, sentence))
    if claim.on_probation:
        sentence = gettext(
            "This computer has returned too few tasks to judge it, or too many of its recent tasks failed, which "
            "could mean that it picks its tasks. Until this changes, its factor is at most 1, and its claims do not "
            "affect the credit of others."
        )
        steps.append(Step(gettext("On probation"), None, sentence))
    if rule not in AMOUNT_SENTENCES:
        steps.append(Step(gettext("Claim (FLOPs)"), claim.claimed_pfc, gettext("The result of the steps above.")))
    return steps


def _version_sentence(rule: ClaimRule, is_received: bool) -> str:
    if rule >= ClaimRule.PEAK_FLOPS:
        return gettext("A factor set by this project.")
    if is_received:
        return gettext(
            "The average for such versions at other projects, because this app has no CPU version to compare this one "
            "with."
        )
    return gettext("Makes equal tasks claim equal credit, however efficient the version is.")


def _host_sentence(claim: Explanation, app: AppFacts | None) -> str:
    """Explain the host's factor: the average of all, or the app's, divided by the host's own."""
    most = (Rules.published() if app is None else app.rules).max_host_scale
    facts = {"own": localised(f"{claim.host_pfc_avg:.6g}"), "own_number": claim.host_pfc_n}
    if claim.claim_rule is ClaimRule.ANONYMOUS_NORMALISED:
        return gettext(
            "The app’s average, %(average)s, divided by this computer’s average, %(own)s (samples: %(own_number)s), "
            "within limits."
        ) % {**facts, "average": localised(f"{claim.min_avg_pfc or 0.0:.6g}")}
    facts |= {"average": localised(f"{claim.version_pfc_avg:.6g}"), "number": claim.version_pfc_n}
    whole = (claim.version_pfc_avg or 0.0) / (claim.host_pfc_avg or 1.0)
    if claim.host_scale == most and most < whole * (1 - 1e-9):
        text = gettext(
            "The version’s average, %(average)s (samples: %(number)s), divided by this computer’s average, %(own)s "
            "(samples: %(own_number)s). The factor was then limited to %(most)s, the maximum for this app."
        )
        facts["most"] = localised(f"{most:.6g}")
    elif not claim.on_probation and (claim.host_scale or 0.0) < whole * (1 - 1e-9):
        text = gettext(
            "The version’s average, %(average)s (samples: %(number)s), divided by this computer’s average, %(own)s "
            "(samples: %(own_number)s). The factor was then lowered, because its earlier tasks do not "
            "justify a higher one."
        )
    else:
        text = gettext(
            "The version’s average, %(average)s (samples: %(number)s), divided by this computer’s average, %(own)s "
            "(samples: %(own_number)s), within limits."
        )
    return text % facts


def grant_steps(grant: Grant, due: float | None = None, min_avg_pfc: float | None = None) -> list[Step]:
    """Return the steps from a workunit's claims to its credit; ``due``: this result's part, after its partial credit.

    ``min_avg_pfc``: the app's average, as the claim read it; None if there was none.
    """
    sentence = str(GRANT_SENTENCES[grant.rule])
    if grant.rule is GrantRule.DEFAULT and min_avg_pfc is None:
        sentence = gettext("All claims are approximate, so all valid results get the task’s estimate.")
    steps = [Step(gettext("Granted (credit)"), grant.credit, sentence)]
    if grant.is_cut:
        sentence = gettext("The grant was cut to the app’s maximum for one task.")
        steps.insert(0, Step(gettext("Maximum (credit)"), grant.credit, sentence))
    if due is not None and due != grant.credit:
        sentence = gettext("The remainder, after the credit granted while the task ran.")
        steps.append(Step(gettext("Granted now (credit)"), due, sentence))
    return steps
