"""Long tables, one page at a time (keyset paging). Pure.

A page begins after the place of the last row of the page before it. So no row is shown twice, and no row that stays
in its place is left out, whatever comes or goes between two pages. A place is one or several whole numbers, written
in an address as ``-1500000_17``.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

Place = tuple[int, ...]
Row = TypeVar("Row")

_MOST_CHARS: Final = 100


@dataclass(frozen=True, slots=True)
class Page(Generic[Row]):
    """The rows of a page. ``after``: the place where the next one begins, "" for the last page's.

    ``is_first``: nothing comes before it; ``is_anew``: nothing comes after the place asked for, so these are the first.
    """

    rows: list[Row]
    after: str
    is_first: bool
    is_anew: bool = False


def page_after(rows: Sequence[Row], place_of: Callable[[Row], Place], after: str, size: int) -> Page[Row]:
    """At most ``size`` rows after a place. ``rows`` are all of them, in the order of their places.

    A text that is no place, and a place that nothing comes after, count as none: the first page.
    """
    place = read_place(after)
    first = bisect_right(rows, place, key=place_of) if place else len(rows)
    is_anew = first >= len(rows)
    if is_anew:
        first = 0
    shown = list(rows[first : first + size])
    follows = first + size < len(rows)
    return Page(shown, place_text(place_of(shown[-1])) if follows else "", first == 0, is_anew)


def further(page: Page[Row]) -> Page[Row]:
    """A page as what is to stand below the ones before: nothing, if it began anew as the rows after the place moved."""
    return Page([], "", is_first=False) if page.is_anew else page


def place_text(place: Place) -> str:
    """A place as it stands in an address."""
    return "_".join(map(str, place))


def read_place(text: str) -> Place | None:
    """A place out of an address; None if it is none."""
    if not text.isascii() or len(text) > _MOST_CHARS:
        return None
    words = text.split("_")
    if not all(word.removeprefix("-").isdigit() for word in words):
        return None
    return tuple(map(int, words))
