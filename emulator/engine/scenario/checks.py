"""Limits of a scenario, and the checks that all its parts share. Pure."""

from __future__ import annotations

import math
from typing import Final

CPU: Final = "CPU"
DAY_SECS: Final = 86400.0
GPU_EFFICIENCY: Final = 0.2  # the part of a GPU's peak that counts as work done: BOINC's own assumption

MAX_PROJECTS: Final = 1000
MAX_APPS: Final = 200  # per project
MAX_VERSIONS: Final = 50  # per application
MAX_KINDS: Final = 16
MAX_INSTANCES: Final = 4096  # of one kind of processor
MAX_JOBS: Final = 20_000  # present at the start
MAX_EVENTS: Final = 10_000
MAX_TRACE_INTERVALS: Final = 20_000  # of one availability trace; a year of changes every 26 minutes
MAX_FAILURES: Final = 1000  # of RPCs in a row
MAX_NAME_CHARS: Final = 255
MAX_FLOPS: Final = 1e18
MAX_FLOP: Final = 1e24
MAX_SECS: Final = 2000 * 366 * DAY_SECS
MAX_SHARE: Final = 1e9
MAX_RAM_BYTES: Final = 1e16
MIN_JOB_FLOP: Final = 1.0  # a drawn size or estimate below this, or negative, becomes this


class ScenarioError(ValueError):
    """A scenario that cannot be run: `field` names the invalid value, the message also says what is allowed."""

    def __init__(self, field: str, why: str) -> None:
        super().__init__(f"{field}: {why}")
        self.field = field
        self.why = why


def check_number(name: str, value: float, least: float, most: float) -> None:
    """Raises ScenarioError unless it is a finite number in the range, ends included."""
    if not (isinstance(value, int | float) and math.isfinite(value) and least <= value <= most):
        raise ScenarioError(name, f"{value!r} is not a number from {least:g} to {most:g}")


def check_count(name: str, items: tuple[object, ...], least: int, most: int) -> None:
    if not least <= len(items) <= most:
        raise ScenarioError(name, f"there are {len(items)}; the limit is {least} to {most}")


def check_name(name: str, value: str) -> None:
    if not 0 < len(value) <= MAX_NAME_CHARS:
        raise ScenarioError(name, f"a name must have 1 to {MAX_NAME_CHARS} characters")
