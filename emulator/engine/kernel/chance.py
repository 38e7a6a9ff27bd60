"""Random numbers identical, bit by bit, to those of emulator.engine.random_numbers. A stream is the state of Python's
generator: 624 words, and the position of the next one.
"""

from __future__ import annotations

from random import Random
from typing import Any, Final, cast

import numpy as np

from emulator.engine import random_numbers
from emulator.engine.kernel.compiled import IS_COMPILED, compiled
from emulator.engine.random_numbers import DEVIATION
from emulator.engine.table import Table

WORDS: Final = 624
UPPER: Final = np.uint32(0x80000000)
LOWER: Final = np.uint32(0x7FFFFFFF)
MATRIX: Final = np.uint32(0x9908B0DF)
ONE: Final = np.uint32(1)

log = compiled(random_numbers.log)
expm1 = compiled(random_numbers.expm1)


@compiled
def word(stream: Any) -> Any:
    """The next 32 bits (the Mersenne Twister)."""
    place = stream[WORDS]
    if place >= WORDS:
        for i in range(WORDS):
            mixed = (stream[i] & UPPER) | (stream[(i + 1) % WORDS] & LOWER)
            value = stream[(i + 397) % WORDS] ^ (mixed >> ONE)
            if mixed & ONE:
                value = value ^ MATRIX
            stream[i] = value
        place = np.uint32(0)
    bits = stream[place]
    stream[WORDS] = np.uint32(place + ONE)
    bits ^= bits >> np.uint32(11)
    bits ^= (bits << np.uint32(7)) & np.uint32(0x9D2C5680)
    bits ^= (bits << np.uint32(15)) & np.uint32(0xEFC60000)
    bits ^= bits >> np.uint32(18)
    return bits


@compiled
def uniform(stream: Any) -> float:
    """A number from 0 to 1 (random.random)."""
    high = word(stream) >> np.uint32(5)
    low = word(stream) >> np.uint32(6)
    return (float(high) * 67108864.0 + float(low)) * (1.0 / 9007199254740992.0)


@compiled
def count_ones(bits: Any) -> int:
    """How many of 32 bits are 1."""
    bits = bits - ((bits >> ONE) & np.uint32(0x55555555))
    bits = (bits & np.uint32(0x33333333)) + ((bits >> np.uint32(2)) & np.uint32(0x33333333))
    bits = (bits + (bits >> np.uint32(4))) & np.uint32(0x0F0F0F0F)
    bits = bits + (bits >> np.uint32(8))
    bits = bits + (bits >> np.uint32(16))
    return int(bits & np.uint32(0x3F))


@compiled
def standard_normal(stream: Any) -> float:
    """A draw of mean 0 and deviation 1."""
    ones = 0
    for _ in range(32):
        ones += count_ones(word(stream))
    return (ones - 512.0 + uniform(stream) - 0.5) / DEVIATION


if not IS_COMPILED:
    # Uncompiled, a stream is Python's generator itself.
    uniform = cast(Any, Random.random)
    standard_normal = cast(Any, random_numbers.standard_normal)


@compiled
def server_is_up(t: Table, p: int, now: float) -> bool:
    """Whether a project's server answers (UpDown.advance, or `sample_once` as BOINC's emulator does)."""
    project = t.projects[p]
    samples_once = t.run[0].one_day_retry and not project.trace_secs
    while project.server_until_secs <= now:
        project.server_up = 1 - project.server_up
        if project.trace_secs:
            _follow_trace(t, p)
            continue
        mean = project.server_up_secs if project.server_up else project.server_down_secs
        stay = -mean * log(1.0 - uniform(t.streams[len(t.projects) + p]))
        if samples_once:
            project.server_until_secs = now + stay
            break
        project.server_until_secs += stay
    return project.server_up != 0


@compiled
def _follow_trace(t: Table, p: int) -> None:
    project = t.projects[p]
    if project.trace_place == project.traces:
        project.trace_place = 0
        project.trace_begin_secs += project.trace_secs
    project.server_until_secs = project.trace_begin_secs + t.times[project.first_trace + project.trace_place, 0]
    project.trace_place += 1
