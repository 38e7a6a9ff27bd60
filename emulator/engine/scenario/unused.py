"""Content of a file that a reader did not use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from emulator.engine.scenario.checks import Between, Chars

MAX_TEXT_CHARS: Final = 2000
MAX_COUNT: Final = 2**53 - 1


@dataclass(frozen=True, slots=True)
class Unused:
    """An element of a file that changes nothing in the scenario: its place in the file, how often it occurs, why."""

    file: Annotated[str, Chars(0, MAX_TEXT_CHARS)]
    element: Annotated[str, Chars(0, MAX_TEXT_CHARS)]
    count: Annotated[int, Between(0, MAX_COUNT)]
    why: Annotated[str, Chars(0, MAX_TEXT_CHARS)]
