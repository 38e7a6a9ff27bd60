"""What the round-robin simulation says of the work buffer: idle instances, saturated times and shortfalls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

Rank = tuple[bool, float]
"""Of a project: those without a share (True) come after all others; then the smaller number is first."""

ENDED_SECS: Final = 1e-6  # a job with less left has ended: rounding


@dataclass(slots=True)
class SimulationResult:
    """The simulation's results, per kind; times in seconds from now.

    An instance, or a part of one, is idle while no job waits that is just too large for it. Saturated times, up to
    which all instances are busy, are exact up to the horizon; beyond it they are a time up to which the kind is
    certainly saturated.
    """

    idle: list[float]
    shortfall_secs: list[float]
    saturated_secs: list[float]
