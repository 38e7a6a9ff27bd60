"""Random numbers as emulator.engine.random_numbers draws them, bit by bit. A stream is the state of Python's generator:
624 words, and the place of the next one."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from emulator.engine.kernel.compiled import compiled
from emulator.engine.random_numbers import DEVIATION, LN2
from emulator.engine.table import Table

WORDS: Final = 624
UPPER: Final = np.uint32(0x80000000)
LOWER: Final = np.uint32(0x7FFFFFFF)
MATRIX: Final = np.uint32(0x9908B0DF)
ONE: Final = np.uint32(1)


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


@compiled
def log(x: float) -> float:
    """The natural logarithm of a positive number."""
    fraction, power = math.frexp(x)
    if fraction < 0.7071067811865476:
        fraction *= 2.0
        power -= 1
    z = (fraction - 1.0) / (fraction + 1.0)
    square = z * z
    total, term, divisor = 0.0, z, 1.0
    while abs(term) > 1e-18:
        total += term / divisor
        term *= square
        divisor += 2.0
    return power * LN2 + 2.0 * total


@compiled
def expm1(x: float) -> float:
    """e^x - 1 for x >= 0."""
    halvings = 0
    while x > 0.01:
        x *= 0.5
        halvings += 1
    grown = x * (1.0 + x / 2 * (1.0 + x / 3 * (1.0 + x / 4 * (1.0 + x / 5 * (1.0 + x / 6)))))
    for _ in range(halvings):
        grown = grown * (grown + 2.0)
    return grown


@compiled
def server_is_up(t: Table, p: int, now: float) -> bool:
    """Whether a project's server answers (UpDown.advance)."""
    project = t.projects[p]
    while project.server_until_secs <= now:
        project.server_up = 1 - project.server_up
        mean = project.server_up_secs if project.server_up else project.server_down_secs
        project.server_until_secs += -mean * log(1.0 - uniform(t.streams[len(t.projects) + p]))
    return project.server_up != 0
