"""The data of static/portal/bars.js: the goals of an experiment, rule sets side by side; a chart for each goal."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from extras.laboratory.own_results import VersionRow
from extras.laboratory.trials.goals import WAYS
from portal.languages.messages import Message
from portal.languages.sentences import sentence

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

FACTORS: Final = frozenset({"goal_one_time", "goal_one_time_way"})
"""Goals that are factors; the others are fractions."""
_NEUTRAL: Final = frozenset({"goal_versions", "goal_versions_pairs", "goal_hosts", "goal_drift", "goal_replicas"})
_PROJECT: Final = frozenset({"goal_cpu_time", "goal_gpu_time"})
_HONEST: Final = frozenset({"goal_honest", "goal_honest_failing"})
_APART: Final = _("difference in %: nearer to 0 is better")
_GAIN: Final = _("extra credit compared with honest computers for the same work, in %: 0 or less is best")
_LOSS: Final = _("lost credit, in %: 0 is best")
_FACTOR: Final = _("times the default: at most 1 is best")
_SHORT: Final = {
    "goal_cpu_time": "goal_cpu_time_short",
    "goal_gpu_time": "goal_gpu_time_short",
    "goal_one_time": "goal_one_time_short",
    "goal_one_time_way": "goal_one_time_way_short",
}
"""For goals where the title of a chart supplies the rest."""


def goal_charts(results: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Build bars for each goal, a series for each variant, with the bounds; empty charts are left out."""
    messages = list(dict.fromkeys(Message.from_json(goal) for variant in results for goal in variant["goals"]))

    def of(codes: Collection[str]) -> list[Message]:
        return [message for message in messages if message.code in codes]

    neutral, project, factors, honest = of(_NEUTRAL), of(_PROJECT), of(FACTORS), of(_HONEST)
    rest = [message for message in messages if message not in {*neutral, *project, *factors, *honest}]
    # Names of the document's many goals state how often a job is computed.
    ways = {
        gettext("Cheat resistance, %(way)s") % {"way": sentence(way)}: [
            message for message in rest if way in message.args.get("way", ())
        ]
        for way in map(Message, WAYS)
    }
    others = [message for message in rest if "way" not in message.args]
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
    title: str, x: str, y: StrOrPromise, messages: Sequence[Message], results: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    factor = 1 if messages[0].code in FACTORS else 100
    goals = [{Message.from_json(goal): goal for goal in variant["goals"]} for variant in results]

    def values(of_variant: Mapping[Message, Mapping[str, Any]], key: str) -> list[float | None]:
        goals_shown = [of_variant.get(message, {}).get(key) for message in messages]
        return [None if value is None else value * factor for value in goals_shown]

    bounds = [next((g[message]["bound"] for g in goals if message in g), None) for message in messages]
    return {
        "title": title,
        "x": x,
        "y": str(y),
        "labels": [_short(message) for message in messages],
        "series": [
            {
                "name": sentence(Message.from_json(variant)),
                "values": values(goal, "measured"),
                "worst": values(goal, "worst"),
            }
            for variant, goal in zip(results, goals, strict=True)
        ],
        "bounds": [None if bound is None else bound * factor for bound in bounds],
        "lies": True,
        "has_legend": True,
    }


def _short(message: Message) -> str:
    if message.code == "goal_gain":
        return sentence(message.args["cheat"])
    return sentence(Message(_SHORT.get(message.code, message.code), **message.args))


def version_chart(versions: Sequence[VersionRow]) -> list[dict[str, Any]]:
    """Build the mean grant of each version of an app."""
    chart = {
        "id": "versions",
        "x": gettext("version"),
        "y": gettext("mean grant / credit for the estimate"),
        "labels": [row.name for row in versions],
        "series": [{"name": gettext("mean grant"), "values": [row.mean for row in versions], "colour": "2"}],
        "lies": True,
    }
    return [chart]
