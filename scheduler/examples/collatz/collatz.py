#!/usr/bin/env python3
"""Find the numbers of a range that take the most Collatz steps: a job program without any library of BOINC's.

    collatz.py FIRST COUNT

Writes "out": the records of the range, one "number steps" a line, and the sum of all steps. The same range always gives
the same bytes, so replicas can be compared bit by bit. It ends as BOINC clients expect: with a file
boinc_finish_called; a range that makes no sense ends with exit code 2.
"""

from __future__ import annotations

import sys
from pathlib import Path


def steps_of(number: int, lengths: list[int]) -> int:
    """Count the steps from number down to one; lengths[n] has those of the first numbers."""
    steps = 0
    while number >= len(lengths):
        number = number >> 1 if number % 2 == 0 else 3 * number + 1
        steps += 1
    return steps + lengths[number]


def main() -> None:
    try:
        first, count = int(sys.argv[1]), int(sys.argv[2])
    except (IndexError, ValueError):
        sys.exit("usage: collatz.py FIRST COUNT")
    if first < 1 or not 1 <= count <= 10**9:
        sys.stderr.write(f"no range: {first} {count}\n")
        sys.exit(2)
    lengths = [0, 0]
    while len(lengths) < 1 << 16:
        lengths.append(steps_of(len(lengths), lengths))
    best = total = 0
    with Path("out").open("w") as out:
        for number in range(first, first + count):
            steps = steps_of(number, lengths)
            total += steps
            if steps > best:
                best = steps
                out.write(f"{number} {steps}\n")
        out.write(f"sum {total}\n")
    Path("boinc_finish_called").write_text("0\n")


main()
