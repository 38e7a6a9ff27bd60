"""Rules for a figure's last values: rates of counters, growing queues, values beyond a limit. Pure functions."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

Points = Sequence[tuple[float, float]]
"""Unix time and value, oldest first."""

GROWS_FACTOR: Final = 2.0
GROWS_AT_LEAST: Final = 100.0


@dataclass(frozen=True, slots=True)
class Course:
    """The last day of a figure: all its series together, and the latest value of each by its label."""

    points: Points = ()
    latest: Mapping[str, float] = field(default_factory=dict)

    @property
    def value(self) -> float | None:
        return self.points[-1][1] if self.points else None


Trouble = Callable[[Course], str]
"""Says in a sentence what needs attention; "": nothing."""


def rates(points: Points, per_secs: float) -> list[tuple[float, float]]:
    """The growth of a counter per ``per_secs``, at the end of each interval; a counter that restarted gives none."""
    per_second = []
    for (before_at, before), (at, value) in itertools.pairwise(points):
        if at > before_at and value >= before:
            per_second.append((at, (value - before) / (at - before_at) * per_secs))
    return per_second


def above(limit: float, sentence: StrOrPromise) -> Trouble:
    """A rule for values over the limit; ``{labels}`` in the sentence names the series."""
    return lambda course: _of(course, lambda value: value > limit, sentence)


def below(limit: float, sentence: StrOrPromise) -> Trouble:
    """A rule for values under the limit."""
    return lambda course: _of(course, lambda value: value < limit, sentence)


def _of(course: Course, is_bad: Callable[[float], bool], sentence: StrOrPromise) -> str:
    bad = [label for label, value in sorted(course.latest.items()) if is_bad(value)]
    return str(sentence).format(labels=", ".join(label for label in bad if label) or "–") if bad else ""


def grows(sentence: StrOrPromise) -> Trouble:
    """A rule for a queue that is twice as long as six hours before, and has not become shorter meanwhile."""

    def look(course: Course) -> str:
        if not course.points:
            return ""
        end, last = course.points[-1]
        window = [value for at, value in course.points if at > end - 6 * 3600 - 1]
        if len(window) < 4 or last < GROWS_AT_LEAST or last < GROWS_FACTOR * window[0]:
            return ""
        rising = all(later >= earlier for earlier, later in itertools.pairwise(window))
        return str(sentence) if rising else ""

    return look


def first_of(*troubles: Trouble) -> Trouble:
    """A rule that returns the first sentence of these rules."""
    return lambda course: next((text for look in troubles if (text := look(course))), "")


def combine(series: Mapping[str, Points], how: Callable[[Iterable[float]], float]) -> list[tuple[float, float]]:
    """Combine all series into one. Values of the same time are taken together; a series without one does not count."""
    by_time: dict[float, list[float]] = defaultdict(list)
    for points in series.values():
        for at, value in points:
            by_time[at].append(value)
    return [(at, how(values)) for at, values in sorted(by_time.items())]
