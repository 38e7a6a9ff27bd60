"""Operating figures, read as the task reads them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable

from portal.dashboard.registry import Reading


def samples(readings: Iterable[Reading], now: dt.datetime) -> dict[tuple[str, str], float]:
    """Their values by figure and label."""
    return {(sample.name, sample.label): sample.value for reading in readings for sample in reading(now)}
