"""Read the page of an experiment: its progress, its figures, and the numbers of its charts."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from extras.laboratory import texts
from extras.laboratory.charts import FACTORS, goal_charts
from extras.laboratory.models import CreditExperiment
from extras.laboratory.request import KIND, share_url
from extras.laboratory.trials.experiment import Experiment
from extras.laboratory.trials.parameters import PARAMETERS
from portal.languages.messages import Message
from portal.languages.sentences import sentence
from portal.requested_work import queue
from portal.templatetags.display import localised, significant


@dataclass(frozen=True, slots=True)
class Cell:
    """A figure of a variant, in words: the mean of the populations, the worst of them, and the verdict."""

    mean: str
    worst: str
    is_met: bool | None


@dataclass(frozen=True, slots=True)
class GoalRow:
    """A goal: its name, its bound, and the figure of each variant (None: not measured)."""

    name: str
    bound: str
    cells: Sequence[Cell | None]


def page_of(row: CreditExperiment, now: dt.datetime) -> dict[str, Any]:
    """Read the results, or the progress of the experiment."""
    standing = None
    if row.finished_at is None:
        standing = queue.standings(KIND, [row.pk], now).get(row.pk)
        if standing is None:
            row.refresh_from_db()  # it may have finished meanwhile
    experiment = Experiment.from_json(row.settings)
    results: list[Mapping[str, Any]] = row.results or []
    messages = dict.fromkeys(Message.from_json(goal) for variant in results for goal in variant["goals"])
    return {
        "experiment": row,
        "failure": sentence(row.failure),
        "said": experiment,
        "unusual": [
            (texts.label(PARAMETERS[name]), significant(value)) for name, value in sorted(experiment.parameters.items())
        ],
        "standing": standing,
        "is_unfinished": standing is not None,
        "is_given_up": row.finished_at is None and standing is None,
        "variants": [sentence(Message.from_json(variant)) for variant in results],
        "rows": [_row(message, results) for message in messages],
        "charts": goal_charts(results),
        "share_url": share_url(row),
    }


def _row(message: Message, results: Sequence[Mapping[str, Any]]) -> GoalRow:
    goals = [
        next((goal for goal in variant["goals"] if Message.from_json(goal) == message), None) for variant in results
    ]
    bounds = {goal["bound"] for goal in goals if goal is not None and goal["bound"] is not None}
    return GoalRow(
        sentence(message),
        _in_words(message.code, bounds.pop()) if bounds else "",
        [
            None
            if goal is None
            else Cell(_in_words(message.code, goal["measured"]), _in_words(message.code, goal["worst"]), goal["is_met"])
            for goal in goals
        ],
    )


def _in_words(code: str, value: float) -> str:
    if code in FACTORS:
        return significant(value)
    return localised(f"{100 * value:.2f}\u202f%").replace("-", "−")


def download(experiment: CreditExperiment) -> dict[str, Any]:
    """Return the experiment as JSON: its settings can be given to `Experiment.from_json`."""
    return {
        "title": experiment.title,
        "asked_at": experiment.asked_at.isoformat(),
        "finished_at": experiment.finished_at and experiment.finished_at.isoformat(),
        "settings": experiment.settings,
        "results": experiment.results,
        "failure": str(experiment.failure or ""),
    }
