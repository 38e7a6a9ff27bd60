"""The six amounts of work as other account managers kept them: credits and seconds in floating point. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from accounting.engine.amounts import MICRO
from extras.moving_in.engine.values import finite

KINDS: Final = ("cpu_ec", "gpu_ec", "cpu_time", "gpu_time", "njobs_success", "njobs_fail")
"""As Science United calls them, in the order of `accounting.engine.amounts.KINDS`."""
MAX_AMOUNT: Final = 1e12
"""Credits or seconds, and jobs: more than anybody has."""
_IN_MICRO: Final = 4


def micro(values: Mapping[str, Any], suffix: str = "") -> Sequence[int] | None:
    """The six in micro-units, jobs as they are; None if one is no number that can be right."""
    found = []
    for place, kind in enumerate(KINDS):
        amount = finite(values[kind + suffix], 0, MAX_AMOUNT)
        if amount is None:
            return None
        found.append(round(amount * MICRO) if place < _IN_MICRO else int(amount))
    return found
