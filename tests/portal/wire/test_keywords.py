"""BOINC's keywords as we keep them."""

from __future__ import annotations

import pytest

from portal.wire import keywords
from portal.wire.keywords import KEYWORDS, PLACE, SCIENCE


@pytest.mark.parametrize(
    ("id_", "name", "kin"),
    [
        (1, "Astronomy", (1,)),
        (3, "Detection and study of pulsars", (3, 1)),
        # cancer is a disease, and diseases are part of biology and medicine
        (14, "Cancer research", (14, 13, 9)),
        (26, "Albert Einstein Institute for Gravitational Physics", (26, 21, 20)),
        (71, "Egypt", (71, 70)),
    ],
)
def test_numbers_and_names_are_boincs(id_: int, name: str, kin: tuple[int, ...]) -> None:
    assert (KEYWORDS[id_].name, KEYWORDS[id_].kin) == (name, kin)


def test_every_keyword_is_whole() -> None:
    assert len(KEYWORDS) == 70
    for id_, keyword in KEYWORDS.items():
        assert keyword.id == id_ == keyword.kin[0] and keyword.name
        assert keyword.category in (SCIENCE, PLACE)
        assert {KEYWORDS[each].category for each in keyword.kin} == {keyword.category}


def test_each_category_is_listed_as_a_tree() -> None:
    for category in (SCIENCE, PLACE):
        above: list[int] = []
        for keyword in keywords.under(category):
            # What stands directly above it, one level up, is what it is part of.
            del above[keyword.level :]
            above.append(keyword.id)
            assert keyword.kin == tuple(reversed(above))


def test_kin_of_several_are_joined_and_strangers_are_alone() -> None:
    assert keywords.kin([14, 3, 999]) == {14, 13, 9, 3, 1, 999}
    assert keywords.known([14, 999, -1]) == {14}
    assert keywords.names({14, 1, 999}) == ["Astronomy", "Cancer research"]
