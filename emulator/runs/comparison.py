"""Figures over several seeds: their spread, and differences between variants with confidence intervals. Pure.

Two policies that run on the same seeds meet the same jobs and the same failures, so the difference at each seed is
compared: its mean, and the 95 % interval by Student's t on these differences. It is far narrower than one from the two
means alone. It assumes that the differences are approximately normally distributed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, stdev
from typing import Final

from emulator.engine.timeline.results import Figures
from emulator.runs.variants import references

CONFIDENCE: Final = 0.95
ATTAINABLE: Final = ("share_violation_least", "share_violation_avoidable")
"""Figures of emulator.runs.attainable, which may be missing in a run: then they are None."""
FIGURES: Final = (*Figures.__slots__, *ATTAINABLE)
"""All figures of merit of a run."""


@dataclass(frozen=True, slots=True)
class Spread:
    """A figure over the seeds of a variant."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Difference:
    """A figure's mean difference from that of another variant at the same seeds, and its confidence interval."""

    mean: float
    low: float
    high: float
    pairs: int

    @property
    def is_clear(self) -> bool:
        """Whether the interval is on one side of 0."""
        return self.low > 0 or self.high < 0


def spread(values: Sequence[float]) -> Spread:
    return Spread(fmean(values), min(values), max(values))


def paired_difference(values: Mapping[int, float], others: Mapping[int, float]) -> Difference | None:
    """Return how much larger the values are than the others, both by seed. Seeds that only one has are left out.

    None with fewer than two pairs: one difference says nothing about chance.
    """
    differences = [value - others[seed] for seed, value in sorted(values.items()) if seed in others]
    pairs = len(differences)
    if pairs < 2:
        return None
    # Loading it takes a tenth of a second, which only comparisons need.
    from scipy.special import stdtrit

    mean = fmean(differences)
    half_width = float(stdtrit(pairs - 1, (1 + CONFIDENCE) / 2)) * stdev(differences) / sqrt(pairs)
    return Difference(mean, mean - half_width, mean + half_width, pairs)


@dataclass(frozen=True, slots=True)
class Compared:
    """A variant's figures over its seeds, and their differences from those of the variant at position `reference`.

    No spreads: none of its runs has figures. No differences: nothing to compare with, or fewer than two common seeds.
    """

    spreads: dict[str, Spread]
    reference: int | None
    differences: dict[str, Difference]


def compare(
    variants: Sequence[Mapping[int, Mapping[str, float]]], values: Sequence[float | None], names: Sequence[str]
) -> list[Compared]:
    """Return each variant's figures of these names. `variants` has each one's figures by seed, `values` those of the
    sweep.
    """
    comparisons = []
    for runs, reference in zip(variants, references(values), strict=True):
        spreads = {name: spread([figures[name] for figures in runs.values()]) for name in names} if runs else {}
        differences = {}
        for name in names if reference is not None else ():
            others = variants[reference if reference is not None else 0]
            difference = paired_difference(_of(runs, name), _of(others, name))
            if difference is not None:
                differences[name] = difference
        comparisons.append(Compared(spreads, reference, differences))
    return comparisons


def _of(runs: Mapping[int, Mapping[str, float]], name: str) -> dict[int, float]:
    return {seed: figures[name] for seed, figures in runs.items()}
