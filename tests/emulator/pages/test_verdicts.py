"""Figures of merit are said to be good or bad, in words."""

from __future__ import annotations

from itertools import pairwise

import pytest

from emulator.pages.reads import FIGURES, VariantRow
from emulator.pages.texts.verdicts import Level, best_of, verdict_of
from emulator.runs.comparison import Spread


@pytest.mark.parametrize(
    ("name", "value", "level"),
    [
        ("idle", 0.0, "good"),
        ("idle", 0.05, "fair"),
        ("idle", 0.5, "poor"),
        ("wasted", 0.001, "good"),
        ("wasted", 0.017, "fair"),
        ("wasted", 0.03, "poor"),
        ("share_violation_normalised", 0.02, "good"),
        ("share_violation_normalised", 0.9, "poor"),
        ("share_violation_avoidable", 0.02, "good"),
        ("monotony", 0.34, "fair"),
        ("rpcs_per_job", 0.31, "good"),
        ("rpcs_per_job", 3.0, "poor"),
    ],
)
def test_a_value_is_good_fair_or_poor(name: str, value: float, level: str) -> None:
    assert verdict_of(name, value, 3).level == level


@pytest.mark.parametrize("name", FIGURES)
def test_more_is_never_better(name: str) -> None:
    levels = [tuple(Level).index(verdict_of(name, step / 100, 2).level) for step in range(200)]
    assert all(before <= after for before, after in pairwise(levels)) and levels[0] == 0 and levels[-1] == 2


def test_with_one_project_nothing_has_to_be_shared() -> None:
    for name in ("monotony", "share_violation_normalised", "share_violation_avoidable"):
        assert "one project" in str(verdict_of(name, 1.0, 1).text)
    assert verdict_of("idle", 1.0, 1).level is Level.POOR


def row(label: str, idle: float | None) -> VariantRow:
    figures = {} if idle is None else {"idle": Spread(idle, idle, idle)}
    return VariantRow(label, None, [], figures, [Spread(0.5, 0.5, 0.5)] * 2, 10, 0)


def test_the_best_variant_is_the_one_with_the_least_of_those_that_finished() -> None:
    best = best_of([row("REC", 0.2), row("JF", 0.05), row("lost", None)])["idle"]
    assert (best.label, best.mean, best.verdict.level, best.is_shared) == ("JF", 0.05, Level.FAIR, False)
    assert best_of([row("REC", 0.05), row("JF", 0.05)])["idle"].is_shared
    assert best_of([row("lost", None)]) == {}
