"""The words of a preview are made of its figures when it is shown, in the reader's language."""

from __future__ import annotations

from django.utils.translation import override

from credit.previews import texts

RESULT = {
    "total": {"before": 100.0, "after": 50.0, "days": 2.0},
    "window": {"nworkunits": 12},
    "waiting": {"before": 0, "after": 1},
}


def test_the_summary_is_in_the_readers_language() -> None:
    with override("de"):
        assert texts.summary(RESULT) == [
            "Die letzten 12 gutgeschriebenen Workunits: 50,0 % weniger Credits, 25 Credits weniger pro Tag.",
            "1 einzelnes Ergebnis mehr würde auf ein zweites warten.",
        ]


def test_kinds_of_computers_are_named_and_versions_stay_as_they_are() -> None:
    with override("de"):
        assert texts.group_name("NVIDIA GPU + another GPU") == "NVIDIA GPU + eine andere GPU"
        assert texts.group_name("1.00 (cuda), x86_64-pc-linux-gnu") == "1.00 (cuda), x86_64-pc-linux-gnu"
