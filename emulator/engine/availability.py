"""Two-state availability processes in continuous time: drawn at random (emulator document, section 4), or replayed."""

from __future__ import annotations

import math
import random

from emulator.engine.random_numbers import exponential
from emulator.engine.scenario import Availability


class UpDown:
    """One process. `up` is its last known state; `until_secs` when it next changes (infinity: never)."""

    def __init__(self, process: Availability, generator: random.Random) -> None:
        self.generator = generator
        self._up_secs = process.mean_up_secs
        self._down_secs = 0.0
        self.trace_secs = process.trace_secs  # 0: no trace
        self.moments = _moments(process)  # of a trace, at which it changes
        self.trace_begin_secs = 0.0  # of the present repetition of the trace
        self.trace_place = 0  # of the change after `until_secs`
        if process.trace_secs:
            self.up = bool(process.trace) and process.trace[0][0] == 0.0
            self.until_secs = self._next_moment()
            return
        if process.fraction <= 0.0 or process.fraction >= 1.0:
            self.up = process.fraction >= 1.0
            self.until_secs = math.inf
            return
        self._down_secs = process.mean_up_secs / process.fraction - process.mean_up_secs
        self.up = generator.random() < process.fraction
        self.until_secs = self._stay()

    @property
    def mean_secs(self) -> tuple[float, float]:
        """The mean length of up and down times, if the process is random and changes at all."""
        return self._up_secs, self._down_secs

    def _stay(self) -> float:
        return exponential(self.generator, self._up_secs if self.up else self._down_secs)

    def advance(self, now: float) -> bool:
        """Returns the state at `now`; calls come in order of time."""
        while self.until_secs <= now:
            self.up = not self.up
            self.until_secs = self._next_moment() if self.trace_secs else self.until_secs + self._stay()
        return self.up

    def _next_moment(self) -> float:
        """When a trace, repeated for ever, next changes its state; infinity if it never does."""
        if not self.moments:
            return math.inf
        if self.trace_place == len(self.moments):
            self.trace_place = 0
            self.trace_begin_secs += self.trace_secs
        self.trace_place += 1
        return self.trace_begin_secs + self.moments[self.trace_place - 1]

    def sample_once(self, now: float) -> bool:
        """Returns the state as BOINC's emulator samples it: at most one change since the last sample, however long ago.

        A trace has nothing to sample, and is followed exactly.
        """
        if self.trace_secs:
            return self.advance(now)
        if self.until_secs <= now:
            self.up = not self.up
            self.until_secs = now + self._stay()
        return self.up


def _moments(process: Availability) -> list[float]:
    """The times at which a trace changes its state within its length."""
    length = process.trace_secs
    moments = [at for interval in process.trace for at in interval]
    # Up at the end and up again at the beginning: that is one interval.
    if moments and moments[0] == 0.0:
        del moments[0]
        if moments[-1] == length:
            del moments[-1]
        else:
            moments.append(length)
    return moments
