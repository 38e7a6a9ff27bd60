"""What a reader of files found and did not use."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Unused:
    """An element of a file that changes nothing in the scenario: its place in the file, how often it is there, why."""

    file: str
    element: str
    count: int
    why: str
