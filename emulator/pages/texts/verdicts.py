"""Explain a figure of merit in a sentence: whether it is good. Remedies are tried elsewhere (emulator.advice).

The bounds are ours: what a volunteer would notice on a computer, not a rule of the emulator document.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

if TYPE_CHECKING:
    from emulator.pages.reads import VariantRow

Text = str | Promise


class Level(StrEnum):
    """How good a figure is."""

    GOOD = "good"
    FAIR = "fair"
    POOR = "poor"


LEVEL_NAMES: Final[dict[Level, Text]] = {Level.GOOD: _("good"), Level.FAIR: _("fair"), Level.POOR: _("poor")}


@dataclass(frozen=True, slots=True)
class Verdict:
    """A figure's level and the sentence about it."""

    level: Level
    text: Text

    @property
    def name(self) -> Text:
        """The level in a word."""
        return LEVEL_NAMES[self.level]


@dataclass(frozen=True, slots=True)
class _Scale:
    """A figure is good up to ``good``, fair up to ``fair``, and poor above; less is better."""

    good: float
    fair: float
    texts: tuple[Text, Text, Text]

    def verdict(self, value: float) -> Verdict:
        place = 0 if value <= self.good else 1 if value <= self.fair else 2
        return Verdict(tuple(Level)[place], self.texts[place])


_SCALES: Final = {
    "idle": _Scale(
        0.01,
        0.1,
        (
            _("The processors were busy nearly all the time they could be."),
            _("Some time was lost."),
            _("Much time was lost: there was often nothing to run."),
        ),
    ),
    "wasted": _Scale(
        0.001,
        0.02,
        (
            _("Nearly every task was finished in time."),
            _("A few tasks were finished after their deadline."),
            _("Much work came too late to count."),
        ),
    ),
    "share_violation_normalised": _Scale(
        0.05,
        0.2,
        (
            _("Projects got their shares."),
            _("Projects got roughly their shares. Over a longer time the difference usually shrinks."),
            _("Projects did not get their shares."),
        ),
    ),
    "share_violation_avoidable": _Scale(
        0.05,
        0.2,
        (
            _("Projects got as close to their shares as any schedule could have brought them."),
            _("Another schedule could have come somewhat closer to the shares."),
            _("Another schedule could have come much closer to the shares."),
        ),
    ),
    "monotony": _Scale(
        0.3,
        0.6,
        (
            _("Projects take turns often."),
            _("Projects run for a while before others have their turn. Most people do not mind."),
            _("One project runs for a long time before others have their turn, so their results come late."),
        ),
    ),
    "rpcs_per_job": _Scale(
        0.5,
        1.0,
        (
            _("Several tasks are fetched and reported at once, which spares the servers of projects."),
            _("Nearly every task is fetched and reported separately."),
            _("Projects are contacted more often than there are tasks: many contacts brought nothing."),
        ),
    ),
}
# With a single project these mean nothing.
_OF_SEVERAL: Final = frozenset({"share_violation_normalised", "share_violation_avoidable", "monotony"})
_ALONE: Final = Verdict(Level.GOOD, _("There is one project, so nothing has to be shared."))


def verdict_of(name: str, value: float, nprojects: int) -> Verdict:
    """Return the meaning of a figure of merit on a computer with this many projects."""
    if nprojects == 1 and name in _OF_SEVERAL:
        return _ALONE
    return _SCALES[name].verdict(value)


@dataclass(frozen=True, slots=True)
class Best:
    """The variant with the lowest value of a figure, its mean, and its meaning; ``is_shared``: others have the same."""

    label: str
    mean: float
    verdict: Verdict
    is_shared: bool


def best_of(rows: Sequence[VariantRow]) -> Mapping[str, Best]:
    """Return the best of the finished variants for each figure."""
    done = [row for row in rows if row.figures]
    if not done:
        return {}
    best_values = {}
    for name in done[0].figures:
        best = min(done, key=lambda row: row.figures[name].mean)
        mean = best.figures[name].mean
        is_shared = sum(row.figures[name].mean <= mean + 1e-12 for row in done) > 1
        best_values[name] = Best(best.label, mean, verdict_of(name, mean, len(best.got)), is_shared)
    return best_values
