"""Amounts of work: exact integers of 1e-6, read from and written as the client's decimal text.

The client prints totals with six decimals, so micro-credits and micro-seconds lose nothing and sums
are exact (accounting rules, principles). Jobs are plain counts without that scale. Pure: no clock, no Django.
"""

from __future__ import annotations

import re
from decimal import ROUND_DOWN, Decimal
from enum import StrEnum
from typing import Final, NamedTuple

# Calling the class takes twice as long, and every report of a client adds and subtracts totals.
_new: Final = tuple.__new__


class Totals(NamedTuple):
    """The six amounts of work: credit and run time in micro-units, jobs as plain counts.

    A tuple, as arrays of the database are written from it. Tuples add by concatenation, so sums have names.
    """

    cpu_ec: int
    gpu_ec: int
    cpu_time: int
    gpu_time: int
    njobs_success: int
    njobs_error: int

    @property
    def credit(self) -> int:
        """CPU and GPU credit together."""
        return self.cpu_ec + self.gpu_ec

    @property
    def run_time(self) -> int:
        """Run time on CPUs and GPUs together."""
        return self.cpu_time + self.gpu_time

    @property
    def njobs(self) -> int:
        """Jobs that succeeded and failed together."""
        return self.njobs_success + self.njobs_error

    def plus(self, other: Totals) -> Totals:
        a, b, c, d, e, f = self
        g, h, i, j, k, m = other
        return _new(Totals, (a + g, b + h, c + i, d + j, e + k, f + m))

    def minus(self, other: Totals) -> Totals:
        a, b, c, d, e, f = self
        g, h, i, j, k, m = other
        return _new(Totals, (a - g, b - h, c - i, d - j, e - k, f - m))

    def larger(self, other: Totals) -> Totals:
        """Return the larger of both, amount by amount."""
        return Totals(*map(max, self, other))


class Processor(StrEnum):
    """A kind of processor whose work is shown separately."""

    CPU = "cpu"
    GPU = "gpu"

    def part(self, amounts: Totals) -> Totals:
        """Return the part of these amounts that this kind did; jobs are those of both, as clients do not say where each
        ran.
        """
        if self is Processor.CPU:
            return amounts._replace(gpu_ec=0, gpu_time=0)
        return amounts._replace(cpu_ec=0, cpu_time=0)


KINDS: Final = Totals._fields
JOB_KINDS: Final = KINDS[4:]
NO_WORK: Final = Totals(0, 0, 0, 0, 0, 0)

MICRO: Final = 1_000_000
AMOUNT_LIMIT: Final = 10**15
"""Amounts must be below this many credits or seconds."""
COUNT_LIMIT: Final = 2**31

FLOPS_PER_CREDIT: Final = 432_000_000_000
"""Floating-point operations per credit: a day (86,400 s) at 1 GFLOPS earns 200 credits."""

_MAX_DIGITS: Final = 400
"""A double printed with %f has at most 316 characters; a client's number is never longer."""
_DECIMAL = re.compile(r"[+-]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][+-]?\d{1,4})?", re.ASCII)
_MICRO_STEP: Final = Decimal("0.000001")
_AMOUNT_FAULT: Final = "not a finite decimal number from 0 to below 1e15"
_COUNT_FAULT: Final = "not an integer from 0 to below 2147483648"


def parse_amount(text: bytes | str) -> int:
    """Return the decimal number in text, in micro-units; digits beyond the sixth decimal are cut off.

    Raises ValueError, naming the limit, for anything but a finite number from 0 to below 1e15.
    """
    raw = text.encode() if isinstance(text, str) else text
    whole, _, fraction = raw.partition(b".")
    # What every client prints: no sign, no exponent, six decimals. bytes.isdigit knows ASCII digits only.
    if len(fraction) == 6 and len(whole) <= 15 and whole.isdigit() and fraction.isdigit():
        return int(whole + fraction)
    return _parse_unusual_amount(raw)


def _parse_unusual_amount(raw: bytes) -> int:
    text = raw.strip().decode("ascii", "replace")
    if len(text) > _MAX_DIGITS or not _DECIMAL.fullmatch(text):
        raise ValueError(_AMOUNT_FAULT)
    number = Decimal(text)
    if not 0 <= number < AMOUNT_LIMIT:
        raise ValueError(_AMOUNT_FAULT)
    # Decimal keeps every digit of its text and quantize cuts in one step: no rounding up at the limit.
    return int(number.quantize(_MICRO_STEP, rounding=ROUND_DOWN).scaleb(6))


def parse_count(text: bytes | str) -> int:
    """Return the integer in text, which may be printed as a double ("3.000000").

    Raises ValueError, naming the limit, for anything but an integer from 0 to below 2**31.
    """
    raw = (text.encode() if isinstance(text, str) else text).strip()
    whole, _, fraction = raw.partition(b".")
    if not whole.isdigit() or fraction.strip(b"0") or len(raw) > _MAX_DIGITS:
        raise ValueError(_COUNT_FAULT)
    count = int(whole)
    if count >= COUNT_LIMIT:
        raise ValueError(_COUNT_FAULT)
    return count


def format_micro(amount: int) -> str:
    """Return an amount in micro-units as decimal text with six decimals: 259346744 as "259.346744"."""
    if amount <= 0:
        return f"-{format_micro(-amount)}" if amount else "0.000000"
    whole, fraction = divmod(amount, MICRO)
    return f"{whole}.{fraction:06d}"
