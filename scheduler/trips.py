"""What requests that come at the same time read and write, in one trip to the database (`portal.together`).

All that is read is one statement. What is written is one transaction for those that write the same parts; but of a
person only one in each: a statement does not see what it sends of the same workunit itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence
from typing import Any, Final, TypeVar

from portal.prepared import Step, fetch_each
from portal.together import Together
from scheduler.store import Diagnosis, Reading
from scheduler.writing import Writing

Wanted = Reading | Writing | Diagnosis
Answer = TypeVar("Answer")
Steps = Generator[Wanted, Any, Answer]
"""An answer that yields what it wants, and is sent what `run` found for it."""


def run(several: Sequence[Wanted], *, apart: bool = False) -> list[Any]:
    """For each what was read, or the ids of the jobs that were sent; or a database error.

    ``apart``: nothing goes with anything else, but for the trip.
    """
    groups: dict[object, list[Any]] = {}
    before: Counter[object] = Counter()
    for each in several:
        whose = each.kind, each.owner
        groups.setdefault(each if apart else (each.kind, before[whose]), []).append(each)
        before[whose] += each.owner is not None
    steps_of_each = [_steps(group) for group in groups.values()]
    to_fetch = [steps for steps in steps_of_each if not isinstance(steps, Exception)]
    fetched = iter(fetch_each(to_fetch) if to_fetch else ())
    found: dict[Wanted, Any] = {}
    for group, steps in zip(groups.values(), steps_of_each, strict=True):
        rows = steps if isinstance(steps, Exception) else next(fetched)
        its = [rows] * len(group) if isinstance(rows, Exception) else type(group[0]).found(group, rows)
        found |= zip(group, its, strict=True)
    return [found[each] for each in several]


def _steps(group: list[Any]) -> list[Step] | Exception:
    try:
        steps: list[Step] = type(group[0]).steps(group)
        return steps
    except Exception as error:
        # Of whatever kind, it is this group's alone.
        return error


together: Final = Together(run)
