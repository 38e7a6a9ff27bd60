"""Loaded by each Python that runs under libfaketime, whose clock_nanosleep refuses what time.sleep asks of it."""

import select
import time
from typing import SupportsIndex


def sleep(secs: float | SupportsIndex, /) -> None:
    if float(secs) < 0:
        raise ValueError("sleep length must be non-negative")
    select.select([], [], [], float(secs))


time.sleep = sleep
