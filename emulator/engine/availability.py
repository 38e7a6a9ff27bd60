"""Two-state availability processes in continuous time: exponential up and down times (emulator document, section 4)."""

from __future__ import annotations

import math
import random

from emulator.engine.random_numbers import exponential
from emulator.engine.scenario import Availability


class UpDown:
    """One process. `up` is its state at `at_secs`; `until_secs` when it next changes (infinity: never)."""

    __slots__ = ("_down_secs", "_generator", "_up_secs", "until_secs", "up")

    def __init__(self, process: Availability, generator: random.Random) -> None:
        self._generator = generator
        self._up_secs = process.mean_up_secs
        if process.fraction <= 0.0 or process.fraction >= 1.0:
            self.up = process.fraction >= 1.0
            self.until_secs = math.inf
            return
        self._down_secs = process.mean_up_secs / process.fraction - process.mean_up_secs
        self.up = generator.random() < process.fraction
        self.until_secs = self._stay()

    def _stay(self) -> float:
        return exponential(self._generator, self._up_secs if self.up else self._down_secs)

    def advance(self, now: float) -> bool:
        """The state at `now`; calls come in order of time."""
        while self.until_secs <= now:
            self.up = not self.up
            self.until_secs += self._stay()
        return self.up

    def sample_once(self, now: float) -> bool:
        """The state as BOINC's emulator samples it: at most one change since the last sample, however long ago."""
        if self.until_secs <= now:
            self.up = not self.up
            self.until_secs = now + self._stay()
        return self.up
