"""Names show what they are made of."""

from __future__ import annotations

import pytest

from portal.wire.names import cleaned, hides_something, on_one_line


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


@pytest.mark.parametrize(
    ("reported", "name"),
    [
        ("studio-7", "studio-7"),
        ("\u202egnp.exe\u202c", "gnp.exe"),
        ("stu\u200bdio\x07", "studio"),
        ("den\tattic", "den attic"),
        ("حاسوب\u200f 3", "حاسوب 3"),
        ("\u2066\u200b", ""),
    ],
    ids=ascii,
)
def test_what_is_not_seen_is_left_out_of_reported_names(reported: str, name: str) -> None:
    assert cleaned(reported) == name and not hides_something(name)


def test_white_space_is_one_space() -> None:
    assert on_one_line("  Mara \t\n of  Peaks ") == "Mara of Peaks"
