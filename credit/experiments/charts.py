"""The data of static/portal/bars.js: the goals of an experiment, rule sets side by side; a chart for each goal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from credit.experiments.own_results import VersionRow
from credit.laboratory.goals import WAYS

FACTOR: Final = "one-time cheat"
"""What goals begin with that are factors; the others are parts of a whole."""
NEUTRAL: Final = ("device neutrality", "equal jobs on different hosts", "drift of", "replicas' claims")
_APART: Final = "difference in %: nearer to 0 is better"
_GAIN: Final = "more credit than honest computers for as much work, in %: 0 or less is best"
_LOSS: Final = "less credit, in %: 0 is best"
_FACTOR: Final = "times the default: at most 1 is best"
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
    ways = {f"Cheat resistance, {way}": [name for name in rest if f"({way}" in name] for way in WAYS}
    others = [name for name in rest if not any(name in of_way for of_way in ways.values())]
    charts = [
        ("Device neutrality: equal jobs, equal credit", "goal", _APART, neutral),
        ("Limited project neutrality: equal time, equal credit", "goal", _APART, project),
        ("Cheat resistance: what those who cheat gain", "way of cheating", _GAIN, others),
        *((title, "way of cheating", _GAIN, of_way) for title, of_way in ways.items()),
        ("Cheat resistance: an absurd run time", "goal", _FACTOR, factors),
        ("Cheat resistance: what honest computers lose", "computers", _LOSS, honest),
    ]
    return [
        _chart(title, x, y, of_goal, results) | {"id": f"goal-{place}"}
        for place, (title, x, y, of_goal) in enumerate(charts)
        if of_goal
    ]


def _chart(title: str, x: str, y: str, names: Sequence[str], results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    factor = 1 if names[0].startswith(FACTOR) else 100
    goals = [{goal["name"]: goal for goal in found["goals"]} for found in results]

    def values(of_variant: Mapping[str, Mapping[str, Any]], key: str) -> list[float | None]:
        found = [of_variant.get(name, {}).get(key) for name in names]
        return [None if value is None else value * factor for value in found]

    bounds = [next((g[name]["bound"] for g in goals if name in g), None) for name in names]
    return {
        "title": title,
        "x": x,
        "y": y,
        "labels": [_short(name) for name in names],
        "series": [
            {"name": found["label"], "values": values(goal, "measured"), "worst": values(goal, "worst")}
            for found, goal in zip(results, goals, strict=True)
        ],
        "bounds": [None if bound is None else bound * factor for bound in bounds],
        "lies": True,
        "has_legend": True,
    }


def _short(name: str) -> str:
    for words in _OFF:
        name = name.removeprefix(words)
    return name.removesuffix(", per FLOP")


def version_chart(versions: Sequence[VersionRow]) -> list[dict[str, Any]]:
    """The mean grant of each version of an app."""
    chart = {
        "id": "versions",
        "x": "version",
        "y": "mean grant, times the credit of the estimate",
        "labels": [row.name for row in versions],
        "series": [{"name": "mean grant", "values": [row.mean for row in versions], "colour": "2"}],
        "lies": True,
    }
    return [chart]
