"""docs/reference/states.md, read: the states of a result, and the list of its transitions."""

from __future__ import annotations

import re
from pathlib import Path

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "states.md").read_text()
State = tuple[int, int, int]

# The words of the list of transitions.
WORDS: dict[str, State | None] = {
    "(none)": None,
    "unsent": (2, 0, 0),
    "in progress": (4, 0, 0),
    "success, unchecked": (5, 1, 0),
    "valid": (5, 1, 1),
    "invalid": (5, 1, 2),
    "not checked": (5, 1, 3),
    "inconclusive": (5, 1, 4),
    "too late": (5, 1, 5),
    "could not be sent": (5, 2, 0),
    "error": (5, 3, 0),
    "no reply": (5, 4, 0),
    "not needed": (5, 5, 0),
    "validate error": (5, 6, 0),
    "abandoned": (5, 7, 0),
}


def listed_states() -> set[State]:
    """The first table: numbers at the beginning of the first three cells."""
    rows = re.findall(r"^\| (\d) [^|]*\| (\d)[^|]*\| (\d)[^|]*\|", TEXT, re.MULTILINE)
    return {(int(a), int(b), int(c)) for a, b, c in rows}


def listed_transitions() -> list[tuple[str, str, str]]:
    """(from, to, who) of the second table."""
    table = TEXT.partition("### What changes a result")[2].partition("There are no other changes.")[0]
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \| [^|]+ \|$", table, re.MULTILINE)
    return [row for row in rows if row[0] not in ("from", "---")]
