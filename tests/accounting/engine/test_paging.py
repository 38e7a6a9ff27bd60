"""Long tables a page at a time: the rule, and places as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounting.engine.paging import further, page_after, place_text, read_place

PLACES = st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 9)), unique=True, max_size=30)


@given(PLACES, st.integers(1, 7))
def test_pages_together_have_every_row_once(places: list[tuple[int, int]], size: int) -> None:
    rows = sorted(places)
    seen: list[tuple[int, int]] = []
    after = ""
    while True:
        page = page_after(rows, lambda row: row, after, size)
        assert page.is_first is (not seen)
        seen += page.rows
        after = page.after
        if not after:
            break
        assert len(page.rows) == size
    assert seen == rows


@given(PLACES.filter(lambda places: len(places) > 3), st.integers(1, 3))
def test_a_row_that_goes_between_two_pages_takes_no_other_along(places: list[tuple[int, int]], size: int) -> None:
    rows = sorted(places)
    first = page_after(rows, lambda row: row, "", size)
    # The row by which the next page is asked for is gone by then.
    second = page_after([row for row in rows if row != rows[size - 1]], lambda row: row, first.after, size)
    assert second.rows == further(second).rows == rows[size : 2 * size]


@pytest.mark.parametrize("text", ["", "x", "1_", "--1", "1.5", "²", "1" * 101, "1_nan", "_"])
def test_what_is_no_place_is_the_beginning(text: str) -> None:
    assert read_place(text) is None
    assert page_after([1, 2, 3], lambda row: (row,), text, 2).rows == [1, 2]


def test_a_place_that_nothing_follows_is_the_beginning() -> None:
    page = page_after([1, 2, 3], lambda row: (row,), place_text((3,)), 2)
    assert (page.rows, page.is_first) == ([1, 2], True)
    # But not below the rows that are shown already.
    assert further(page).rows == []
    rest = page_after([1, 2, 3], lambda row: (row,), place_text((2,)), 2)
    assert further(rest) is rest
