"""Names show what they are made of."""

from __future__ import annotations

import pytest

from portal.wire.names import hides_something, on_one_line


@pytest.mark.parametrize(
    "name", ["Zoë O’Neil", "مريم", "נועה", "李小龍", "Ngọc", "Team 🚀", "a <b> & c", "e\u0301", "❤\ufe0f", "x\u00a0y"]
)
def test_letters_of_all_scripts_and_signs_are_names(name: str) -> None:
    assert not hides_something(name)


@pytest.mark.parametrize(
    "unseen",
    [
        *"\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c",  # turn text round
        *"\u200b\u200c\u200d\u2060\ufeff\u00ad\u180e",  # have no width
        *"\x00\x07\n\x1b\x7f\x85\u2028\u2029\ud800\ue000\uffff",  # no characters of texts
        *"\u3164\u2800\u115f\U000e0041",  # are nothing to see
    ],
    ids=ascii,
)
def test_what_is_not_seen_is_none(unseen: str) -> None:
    assert hides_something(f"Mara{unseen}x")


def test_white_space_is_one_space() -> None:
    assert on_one_line("  Mara \t\n of  Peaks ") == "Mara of Peaks"
