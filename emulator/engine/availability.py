"""Two-state availability processes in continuous time: drawn at random (emulator document, section 4), or replayed."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

from emulator.engine.random_numbers import exponential
from emulator.engine.scenario import Availability


class UpDown:
    """One process. `up` is its last known state; `until_secs` when it next changes (infinity: never)."""

    __slots__ = ("_changes", "_down_secs", "_up_secs", "generator", "until_secs", "up")

    def __init__(self, process: Availability, generator: random.Random) -> None:
        self.generator = generator
        self._up_secs = process.mean_up_secs
        self._changes: Iterator[float] | None = None
        if process.trace_secs:
            self.up = bool(process.trace) and process.trace[0][0] == 0.0
            self._changes = _changes(process)
            self.until_secs = next(self._changes)
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
        """How long it stays up and down in the mean, if it is drawn and changes at all; else 0."""
        return (0.0, 0.0) if self.until_secs == math.inf else (self._up_secs, self._down_secs)

    def _stay(self) -> float:
        return exponential(self.generator, self._up_secs if self.up else self._down_secs)

    def advance(self, now: float) -> bool:
        """The state at `now`; calls come in order of time."""
        while self.until_secs <= now:
            self.up = not self.up
            self.until_secs = self.until_secs + self._stay() if self._changes is None else next(self._changes)
        return self.up

    def sample_once(self, now: float) -> bool:
        """The state as BOINC's emulator samples it: at most one change since the last sample, however long ago.

        A trace has nothing to sample, and is followed."""
        if self._changes is not None:
            return self.advance(now)
        if self.until_secs <= now:
            self.up = not self.up
            self.until_secs = now + self._stay()
        return self.up


def _changes(process: Availability) -> Iterator[float]:
    """When a trace, repeated for ever, changes its state; infinity at its end if it never does."""
    length = process.trace_secs
    moments = [at for interval in process.trace for at in interval]
    # Up when it ends and up when it begins again: that is one interval.
    if moments and moments[0] == 0.0:
        del moments[0]
        if moments[-1] == length:
            del moments[-1]
        else:
            moments.append(length)
    begin = 0.0
    while moments:
        for at in moments:
            yield begin + at
        begin += length
    while True:
        yield math.inf
