"""Alternating rounds of a measurement and of its reference, and their medians."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Measured:
    """One round: calls per second, and other figures, such as latencies."""

    rate: float
    figures: Mapping[str, float] = field(default_factory=dict)


def in_turns(rounds: int, *sides: Callable[[], Measured]) -> list[list[Measured]]:
    """Return the rounds of each side. They alternate, so that a drifting machine affects all alike."""
    turns = [[measure() for measure in sides] for _ in range(rounds)]
    return [list(side) for side in zip(*turns, strict=True)]


def beside_floor(ours: Sequence[Measured], floor: Sequence[Measured]) -> dict[str, float]:
    """Return medians of the rounds of both, and of the ratios of adjacent rounds."""
    return {
        "rate": round(median_rate(ours)),
        "floor": round(median_rate(floor)),
        "ratio": median_ratio(ours, floor),
        **{
            name: round(statistics.median(measured.figures.get(name, 0) for measured in ours), 3)
            for name in ours[0].figures
        },
    }


def median_rate(rounds: Sequence[Measured]) -> float:
    return statistics.median(measured.rate for measured in rounds)


def median_ratio(rounds: Sequence[Measured], others: Sequence[Measured]) -> float:
    return round(statistics.median(ours.rate / other.rate for ours, other in zip(rounds, others, strict=True)), 3)


def percentile(times: Sequence[float], percent: int) -> float:
    """Return a percentile of times in ascending order."""
    return times[min(len(times) - 1, len(times) * percent // 100)]


def least_cpu_secs(work: Callable[[], object], repeats: int) -> float:
    """Return the least processor time of several runs: other work on the machine only adds to it."""
    return min(_cpu_secs(work) for _ in range(repeats))


def _cpu_secs(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began
