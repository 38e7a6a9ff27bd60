"""Random numbers, logarithm and exponential function that are the same on every machine.

Python's Mersenne Twister gives the same bits everywhere, but the C library's log, exp and cos differ in their last
bit between machines, and one bit can turn a choice between two equal projects. So only exact operations are used
here: addition, multiplication, division, square root, and counting bits. Each purpose has a stream of its own,
seeded from the run's seed and a name, so that more draws for one thing change nothing else.
"""

from __future__ import annotations

import math
import random
from typing import Final

LN2: Final = 0.6931471805599453
_BITS: Final = 1024
# Of the number of ones among 1024 bits (variance 256) plus a uniform number (variance 1/12).
DEVIATION: Final = math.sqrt(_BITS / 4 + 1 / 12)


def random_stream(seed: int, *names: str | int) -> random.Random:
    """A generator for one purpose."""
    return random.Random("/".join(map(str, (seed, *names))))  # seeded by SHA-512 of the text


def standard_normal(generator: random.Random) -> float:
    """Draws from a distribution of mean 0 and deviation 1: ones among 1024 random bits, smoothed. Within +-32; excess
    kurtosis -0.002.
    """
    return (generator.getrandbits(_BITS).bit_count() - _BITS / 2 + generator.random() - 0.5) / DEVIATION


def exponential(generator: random.Random, mean: float) -> float:
    """Draws from an exponential distribution with that mean."""
    return -mean * log(1.0 - generator.random())


def log(x: float) -> float:
    """The natural logarithm of a positive number, within 1e-15 of it, the same on every machine."""
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


def expm1(x: float) -> float:
    """e^x - 1 for x >= 0, the same on every machine."""
    halvings = 0
    while x > 0.01:
        x *= 0.5
        halvings += 1
    grown = x * (1.0 + x / 2 * (1.0 + x / 3 * (1.0 + x / 4 * (1.0 + x / 5 * (1.0 + x / 6)))))
    for _ in range(halvings):
        grown = grown * (grown + 2.0)
    return grown
