"""The variants that an experiment compares: policies, or each at several values of a parameter. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Variant:
    """One variant of a comparison: a policy, its differences from the defaults, and the value of a sweep."""

    label: str
    policy: str
    has_quirks: bool = False
    parameters: dict[str, Any] = field(default_factory=dict)
    value: float | None = None


def swept(bases: Sequence[Variant], parameter: str, values: Sequence[float]) -> list[Variant]:
    """Return each variant at each value of the parameter; the variants themselves if no parameter is named."""
    if not parameter:
        return list(bases)
    return [
        replace(
            base,
            label=f"{base.label}, {value:g}",
            parameters={**base.parameters, parameter: value},
            value=value,
        )
        for base in bases
        for value in values
    ]


def references(values: Sequence[float | None]) -> list[int | None]:
    """Return the index of the variant that each variant is compared with, given the value that each has in a sweep.

    That is the first with the same value (so policies are compared at each value) or, in a sweep of one policy, the one
    with the first value. None for those that others are compared with.
    """
    has_twins = len(set(values)) < len(values)
    first: dict[float | None, int] = {}
    for place, value in enumerate(values):
        first.setdefault(value if has_twins else None, place)
    reference_runs = [first[value if has_twins else None] for value in values]
    return [place if place != number else None for number, place in enumerate(reference_runs)]
