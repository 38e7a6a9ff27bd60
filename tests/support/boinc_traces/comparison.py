"""How far computed numbers are from expected ones, counted per quantity."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Final

TOLERANCE: Final = 1e-9
"""The relative difference from which on a number counts as another one."""


@dataclass(slots=True)
class Tally:
    """The comparisons of one quantity: how many, how many differed, and by how much at worst (relative)."""

    count: int = 0
    ndiffering: int = 0
    worst: float = 0.0


@dataclass(slots=True)
class Comparison:
    """Tallies by quantity, in the order first met; and all credit of workunits, computed and expected."""

    tallies: dict[str, Tally] = field(default_factory=dict)
    computed_credit: float = 0.0
    expected_credit: float = 0.0

    @property
    def worst(self) -> float:
        """The worst relative difference of all; infinity if something is missing or is another word."""
        return max((tally.worst for tally in self.tallies.values()), default=0.0)

    @property
    def ndiffering(self) -> int:
        return sum(tally.ndiffering for tally in self.tallies.values())

    def number(self, quantity: str, computed: float | None, expected: float | None) -> None:
        self._add(quantity, relative_difference(computed, expected))

    def word(self, quantity: str, computed: str | None, expected: str | None) -> None:
        self._add(quantity, 0.0 if computed == expected else inf)

    def credit(self, quantity: str, computed: float, expected: float) -> None:
        """As ``number``, and added up."""
        self.number(quantity, computed, expected)
        self.computed_credit += computed
        self.expected_credit += expected

    def rows(self, quantity: str, computed: Collection[object], expected: Collection[object]) -> None:
        """The keys of a table: one comparison, and one difference for each key that only one side has."""
        unmatched = len(set(computed) ^ set(expected))
        self._add(f"rows of {quantity}", inf if unmatched else 0.0)

    def _add(self, quantity: str, difference: float) -> None:
        tally = self.tallies.setdefault(quantity, Tally())
        tally.count += 1
        if difference > tally.worst:
            tally.worst = difference
        if difference > TOLERANCE:
            tally.ndiffering += 1


def relative_difference(a: float | None, b: float | None) -> float:
    """|a − b| / the larger of both; 0 for equals, infinity where only one is a finite number."""
    if a == b:
        return 0.0
    if a is None or b is None or not isfinite(a) or not isfinite(b):
        return inf
    return abs(a - b) / max(abs(a), abs(b))
