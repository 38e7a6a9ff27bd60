"""What requests that come at the same time read and write, in one trip to the database (`portal.together`).

All that is read is one statement. What is written is one transaction for those that write the same parts; but of a
person only one in each: a statement does not see what it sends of the same workunit itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Sequence
from typing import Any, Final, TypeVar

from portal.prepared import Rows, Step, fetch_each
from portal.together import Together
from scheduler import store, writing
from scheduler.store import Reading
from scheduler.writing import Writing

Wanted = Reading | Writing
Answer = TypeVar("Answer")
Steps = Generator[Wanted, Any, Answer]
"""An answer that yields what it wants, and is sent what `run` found for it."""

_HOW: Final[dict[type[Wanted], tuple[Callable[[Any], list[Step]], Callable[[Any, Rows], list[Any]]]]] = {
    Reading: (store.steps, store.found),
    Writing: (writing.steps, writing.sent),
}


def run(several: Sequence[Wanted]) -> list[Any]:
    """For each the row that was read, or the ids of the jobs that were sent; or a database error."""
    groups: dict[object, list[Wanted]] = {}
    before: Counter[object] = Counter()
    for each in several:
        whose = each.kind, each.owner
        groups.setdefault((each.kind, before[whose]), []).append(each)
        before[whose] += each.owner is not None
    how = [_HOW[type(group[0])] for group in groups.values()]
    rows_of_each = fetch_each([steps(group) for (steps, _), group in zip(how, groups.values(), strict=True)])
    found: dict[Wanted, Any] = {}
    for (_, results), group, rows in zip(how, groups.values(), rows_of_each, strict=True):
        found |= zip(group, [rows] * len(group) if isinstance(rows, Exception) else results(group, rows), strict=True)
    return [found[each] for each in several]


together: Final = Together(run)
