"""The data of static/portal/bars.js: the goals of an experiment, rule sets side by side; a chart for each goal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from extras.laboratory import texts
from extras.laboratory.own_results import VersionRow
from extras.laboratory.trials.goals import WAYS

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

FACTOR: Final = "one-time cheat"
"""What goals begin with that are factors; the others are parts of a whole."""
NEUTRAL: Final = ("device neutrality", "equal jobs on different hosts", "drift of", "replicas' claims")
_APART: Final = _("difference in %: nearer to 0 is better")
_GAIN: Final = _("extra credit compared with honest computers for the same work, in %: 0 or less is best")
_LOSS: Final = _("lost credit, in %: 0 is best")
_FACTOR: Final = _("times the default: at most 1 is best")
_OFF: Final = ("project neutrality: ", "gain of those ", "one-time cheat: ")
"""What the title of a chart says already."""


def goal_charts(results: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Bars of each goal, a series for each variant, with the bounds; those of nothing are left out."""
    names = list(dict.fromkeys(goal["name"] for found in results for goal in found["goals"]))
    neutral = [name for name in names if name.startswith(NEUTRAL)]
    project = [name for name in names if name.startswith("project neutrality")]
    factors = [name for name in names if name.startswith(FACTOR)]
    honest = [name for name in names if name.startswith("honest computers")]
    rest = [name for name in names if name not in {*neutral, *project, *factors, *honest}]
    # The document's goals, which are many, say how often a job is computed.
    ways = {
        gettext("Cheat resistance, %(way)s") % {"way": gettext(way)}: [name for name in rest if f"({way}" in name]
        for way in WAYS
    }
    others = [name for name in rest if not any(name in of_way for of_way in ways.values())]
    charts = [
        (gettext("Device neutrality: equal jobs, equal credit"), gettext("goal"), _APART, neutral),
        (gettext("Limited project neutrality: equal time, equal credit"), gettext("goal"), _APART, project),
        (gettext("Cheat resistance: gain of those who cheat"), gettext("way of cheating"), _GAIN, others),
        *((title, gettext("way of cheating"), _GAIN, of_way) for title, of_way in ways.items()),
        (gettext("Cheat resistance: an absurd run time"), gettext("goal"), _FACTOR, factors),
        (gettext("Cheat resistance: loss of honest computers"), gettext("computers"), _LOSS, honest),
    ]
    return [
        _chart(title, x, y, of_goal, results) | {"id": f"goal-{place}"}
        for place, (title, x, y, of_goal) in enumerate(charts)
        if of_goal
    ]


def _chart(
    title: str, x: str, y: StrOrPromise, names: Sequence[str], results: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    factor = 1 if names[0].startswith(FACTOR) else 100
    goals = [{goal["name"]: goal for goal in found["goals"]} for found in results]

    def values(of_variant: Mapping[str, Mapping[str, Any]], key: str) -> list[float | None]:
        found = [of_variant.get(name, {}).get(key) for name in names]
        return [None if value is None else value * factor for value in found]

    bounds = [next((g[name]["bound"] for g in goals if name in g), None) for name in names]
    return {
        "title": title,
        "x": x,
        "y": str(y),
        "labels": [_short(name) for name in names],
        "series": [
            {"name": texts.variant(found["label"]), "values": values(goal, "measured"), "worst": values(goal, "worst")}
            for found, goal in zip(results, goals, strict=True)
        ],
        "bounds": [None if bound is None else bound * factor for bound in bounds],
        "lies": True,
        "has_legend": True,
    }


def _short(name: str) -> str:
    for words in _OFF:
        name = name.removeprefix(words)
    return texts.goal(name.removesuffix(", per FLOP"))


def version_chart(versions: Sequence[VersionRow]) -> list[dict[str, Any]]:
    """The mean grant of each version of an app."""
    chart = {
        "id": "versions",
        "x": gettext("version"),
        "y": gettext("mean grant / credit for the estimate"),
        "labels": [row.name for row in versions],
        "series": [{"name": gettext("mean grant"), "values": [row.mean for row in versions], "colour": "2"}],
        "lies": True,
    }
    return [chart]
