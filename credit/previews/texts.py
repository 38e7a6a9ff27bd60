"""A finished preview in words: its summary, its warnings, and how a task's grants are calculated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from credit.engine.explanation import ClaimRule, Explanation, grant_rule_of
from credit.engine.explanation import Grant as Granted
from credit.engine.facts import AppFacts, WorkunitFacts
from credit.engine.rules import Rules
from credit.pages.explanation_texts import Step, claim_steps, grant_steps
from credit.previews.figures import EDGES, EXACT, FEWEST, MOVED, NO_CLASS, NO_VERSION, UNEQUAL
from portal.templatetags.display import localised

OTHER_GPU: Final = "another GPU"
NO_GPU: Final = "CPUs only"
_NAMES: Final = {
    NO_VERSION: _("volunteers’ own programs"),
    NO_CLASS: _("no longer known"),
    OTHER_GPU: _("another GPU"),
    NO_GPU: _("CPUs only"),
}
"""Stored group names that are not the names of versions or makers."""


def group_name(stored: str) -> str:
    """Return the display name of a version or a kind of computer."""
    return " + ".join(str(_NAMES.get(part, part)) for part in stored.split(" + "))


def spread_labels() -> list[str]:
    """Return the words for changes between the edges, from the greatest loss to the greatest gain."""
    texts = [f"{edge:+.0%}".replace("-", "−").replace("%", " %") for edge in EDGES]
    between = [gettext("%(low)s to %(high)s") % {"low": low, "high": high} for low, high in pairwise(texts)]
    return [
        gettext("below %(limit)s") % {"limit": texts[0]},
        *between,
        gettext("%(limit)s and more") % {"limit": texts[-1]},
    ]


def warnings(result: Mapping[str, Any]) -> list[str]:
    """Warn where equal jobs would stop earning equal credit, or differ even more."""
    by_version = gettext(
        "Equal jobs would not earn equal credit. With version %(name)s they would earn %(after)s the mean of all jobs "
        "of their size. Now: %(before)s the mean."
    )
    by_class = gettext(
        "Equal jobs would not earn equal credit. On computers with %(name)s they would earn %(after)s the mean of all "
        "jobs of their size. Now: %(before)s the mean."
    )
    return [*_warnings(by_version, result["versions"]), *_warnings(by_class, result["classes"])]


def _warnings(text: str, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for row in rows:
        before, after = row["ratio_before"], row["ratio_after"]
        if row["nresults"] < FEWEST or before is None or after is None:
            continue
        if abs(after - 1) > UNEQUAL and abs(after - 1) > abs(before - 1) + MOVED:
            yield text % {"name": group_name(row["name"]), "after": _off(after), "before": _off(before)}


def _off(ratio: float) -> str:
    """Say how far off the mean; "the mean" follows."""
    change = abs(ratio - 1)
    if change < 0.005:
        return gettext("as much as")
    percent = {"percent": f"{change:.0%}".replace("%", " %")}
    return (gettext("%(percent)s more than") if ratio > 1 else gettext("%(percent)s less than")) % percent


def summary(result: Mapping[str, Any]) -> list[str]:
    """Summarise the result in a few sentences."""
    words = [_credit_sentence(result)]
    if waits := result["waiting"]["after"] - result["waiting"]["before"]:
        number = abs(waits)
        text = (
            ngettext(
                "%(number)s more single result would wait for a second one.",
                "%(number)s more single results would wait for a second one.",
                number,
            )
            if waits > 0
            else ngettext(
                "%(number)s fewer single result would wait for a second one.",
                "%(number)s fewer single results would wait for a second one.",
                number,
            )
        )
        words.append(text % {"number": localised(f"{number:,}")})
    return words


def _credit_sentence(result: Mapping[str, Any]) -> str:
    before, after, days = (result["total"][name] for name in ("before", "after", "days"))
    facts = {"number": localised(f"{result['window']['nworkunits']:,}")}
    if not before or abs(after - before) <= EXACT * before:
        return gettext("Most recent %(number)s granted workunits: the total credit stays the same.") % facts
    facts |= {
        "percent": localised(f"{abs(after - before) / before:.1%}").replace("%", " %"),
        "credits": localised(f"{abs(after - before) / days:,.0f}"),
    }
    if after > before:
        text = gettext(
            "Most recent %(number)s granted workunits: %(percent)s more credit, %(credits)s more credits per day."
        )
    else:
        text = gettext(
            "Most recent %(number)s granted workunits: %(percent)s less credit, %(credits)s fewer credits per day."
        )
    return text % facts


def steps(host: Mapping[str, Any]) -> list[list[Step]]:
    """Explain the grant of the task that changes most: currently, and with the change."""
    return [_side(host["task"], side) for side in host["sides"]]


def _side(task: Mapping[str, Any], side: Mapping[str, Any] | None) -> list[Step]:
    if side is None:
        waits = gettext("It would wait for a second result to confirm it.")
        return [Step(gettext("Granted (credit)"), None, waits)]
    claim = Explanation(**{**side["claim"], "claim_rule": ClaimRule(side["claim"]["claim_rule"])})
    rule, is_cut = grant_rule_of(side["rule"])
    workunit = WorkunitFacts(task["fpops_est"], task["fpops_est"])
    rules = replace(Rules.published(), max_host_scale=side["max_host_scale"])
    app = AppFacts(0, rules, host_scale_check=side["host_scale_check"])
    steps = claim_steps(claim, workunit, task["partial_credit"], task["elapsed_secs"], app=app)
    due = max(0.0, side["credit"] - task["partial_credit"])
    return steps + grant_steps(Granted(side["credit"], rule, is_cut), due, claim.min_avg_pfc)
