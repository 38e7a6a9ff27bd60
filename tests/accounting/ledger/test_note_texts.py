"""Every kind of note has its sentences, with the right amounts and units."""

from __future__ import annotations

import datetime as dt

import pytest
from django.utils.translation import override

from accounting.engine.amounts import KINDS
from accounting.engine.states import NoteKind
from accounting.ledger.texts import explain
from accounting.models import Note
from portal.languages.messages import Message


def note(kind: str, detail: str = "", amount: int = 0) -> Note:
    return Note(kind=kind, detail=detail, amount=amount, day=dt.date(2026, 3, 1))


def plain(text: str) -> str:
    return text.replace("\u202f", " ").replace("\u00a0", " ")


@pytest.mark.parametrize("kind", list(NoteKind))
def test_each_kind_has_words_of_its_own(kind: NoteKind) -> None:
    text = explain(note(kind, "something"), "Glaciers")
    assert text.happened.endswith(".") and text.meaning.endswith(".")
    assert "Note: " not in text.happened
    assert "%" not in text.happened + text.meaning + text.to_do


def test_what_does_not_count_is_marked_as_a_loss() -> None:
    losses = {kind for kind in NoteKind if explain(note(kind)).is_loss}
    assert losses == {NoteKind.INVALID, NoteKind.SUM_BROKEN, NoteKind.EC_ABOVE_TIME, NoteKind.DROPPED}
    assert all(explain(note(kind)).to_do for kind in losses)


@pytest.mark.parametrize(
    ("detail", "amount", "says"),
    [
        ("cpu_ec", 1_500_000_000, "1 500 credits for CPU work"),  # micro-credits
        ("gpu_ec", 250_000, "0.25 credits for GPU work"),
        ("cpu_time", 7_200_000_000, "2 h of CPU time"),  # micro-seconds
        ("gpu_time", 90_000_000, "2 min of GPU time"),  # 1.5 min, rounded
        ("njobs_success", 4_999, "4 999 finished tasks"),
        ("njobs_error", 1, "1 failed tasks"),
    ],
)
def test_a_dropped_amount_has_its_unit(detail: str, amount: int, says: str) -> None:
    assert detail in KINDS
    assert says in plain(explain(note("dropped", detail, amount)).happened)


def test_a_baseline_is_credit() -> None:
    text = explain(note("baseline", "", 88_123_000_000), "Bees")
    assert plain(text.happened) == "Bees reported earlier work: 88 123 credits."


def test_a_project_called_like_a_placeholder_stays_as_it_is() -> None:
    assert explain(note("reset"), "%(amount)s <b>").happened == "The totals of %(amount)s <b> started from zero again."


def test_a_kind_of_a_later_version_is_shown_all_the_same() -> None:
    assert explain(note("brand_new")).happened == "Note: brand_new."


def test_why_totals_could_not_be_read_is_said_in_the_readers_language() -> None:
    packed = Message("total_no_amount", kind="cpu_ec").packed()
    assert "cpu_ec is not a finite decimal number" in plain(explain(note("invalid", packed)).happened)
    with override("de"):
        assert "cpu_ec ist keine endliche Dezimalzahl" in plain(explain(note("invalid", packed)).happened)
