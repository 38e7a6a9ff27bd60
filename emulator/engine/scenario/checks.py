"""Limits of a scenario, and the checks that all its parts share. Pure.

A field has its limits in its type: ``Annotated[float, Between(0, 1)]``. `check_limits` checks them, and the JSON Schema
(emulator.files.scenario_schema) publishes the same ones.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Final, get_args, get_type_hints

from portal.languages.messages import Message, at_place

CPU: Final = "CPU"
DAY_SECS: Final = 86400.0
GPU_EFFICIENCY: Final = 0.2  # the part of a GPU's peak that counts as work done: BOINC's own assumption

MAX_PROJECTS: Final = 1000
MAX_APPS: Final = 200  # per project
MAX_VERSIONS: Final = 50  # per application
MAX_KINDS: Final = 16
MAX_INSTANCES: Final = 4096  # instances of one kind of processor
MAX_JOBS: Final = 20_000  # jobs present at the start
MAX_EVENTS: Final = 10_000
MAX_TRACE_INTERVALS: Final = 20_000  # changes of one availability trace; a year of changes every 26 minutes
MAX_FAILURES: Final = 1000  # of RPCs in a row
MAX_NAME_CHARS: Final = 255
MAX_FLOPS: Final = 1e18
MAX_FLOP: Final = 1e24
MAX_SECS: Final = 2000 * 366 * DAY_SECS
MAX_SHARE: Final = 1e9
MAX_RAM_BYTES: Final = 1e16
MIN_JOB_FLOP: Final = 1.0  # a smaller or negative drawn size or estimate becomes this


class ScenarioError(ValueError):
    """A scenario that cannot be run: `field` names the invalid value, and `why`, given or built from its code and
    arguments, says what is allowed (emulator/messages.py).
    """

    def __init__(self, field: str, why: str | Message, /, **args: object) -> None:
        self.field = field
        self.why = why if isinstance(why, Message) else Message(why, **args)
        super().__init__(field, self.why)

    @property
    def message(self) -> Message:
        """The place of the fault, and the reason."""
        return at_place(self.field, self.why)

    def __str__(self) -> str:
        return str(self.message)


@dataclass(frozen=True, slots=True)
class Between:
    """A finite number from `least` to `most`, ends included."""

    least: float
    most: float


@dataclass(frozen=True, slots=True)
class Chars:
    """A text of this many characters, none of which is NUL."""

    least: int
    most: int


Name = Annotated[str, Chars(1, MAX_NAME_CHARS)]
Label = Annotated[str, Chars(0, MAX_NAME_CHARS)]
Secs = Annotated[float, Between(0, MAX_SECS)]
Instances = Annotated[int, Between(0, MAX_INSTANCES)]
Share = Annotated[float, Between(0, MAX_SHARE)]


@dataclass(frozen=True, slots=True)
class Count:
    """A list of this many items."""

    least: int
    most: int


@cache
def limits_of(part: type) -> tuple[tuple[str, Between | Chars | Count], ...]:
    """The fields of a dataclass that have limits, and these. One that may be None has those of its other type."""
    hints = get_type_hints(part, include_extras=True)
    return tuple(
        (field.name, limit)
        for field in dataclasses.fields(part)
        for kind in (hints[field.name], *get_args(hints[field.name]))
        for limit in getattr(kind, "__metadata__", ())
        if isinstance(limit, Between | Chars | Count)
    )


def check_limits(before: str, part: Any) -> None:
    """Checks the limits of all fields of a dataclass. ``before``: a prefix of the field's name in an error."""
    for field, limit in limits_of(part.__class__):
        value = getattr(part, field)
        if value is None:
            continue
        if isinstance(limit, Between):
            check_number(before + field, value, limit.least, limit.most)
        elif isinstance(limit, Count):
            check_count(before + field, value, limit.least, limit.most)
        else:
            check_text(before + field, value, limit)


def check_number(name: str, value: float, least: float, most: float) -> None:
    """Raises ScenarioError unless it is a finite number in the range, ends included."""
    if not (isinstance(value, int | float) and math.isfinite(value) and least <= value <= most):
        raise ScenarioError(name, "not_in_range", value=value, low=float(least), high=float(most))


def check_count(name: str, items: tuple[object, ...], least: int, most: int) -> None:
    if not least <= len(items) <= most:
        raise ScenarioError(name, "wrong_number_of", number=len(items), low=least, high=most)


def check_text(name: str, value: str, limit: Chars) -> None:
    if limit.least and not limit.least <= len(value) <= limit.most:
        raise ScenarioError(name, "name_length", limit=limit.most)
    if len(value) > limit.most:
        raise ScenarioError(name, "text_too_long", limit=limit.most)
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ScenarioError(name, "not_unicode") from None
    if "\0" in value:
        raise ScenarioError(name, "nul_character")
