"""What the emulator stores in English is shown in the visitor's language, and everything has words."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.utils.translation import override

import emulator
from emulator.engine.timeline.reasons import Reason
from emulator.files import unused
from emulator.files.presets import PRESETS
from emulator.pages.texts import decision_texts, preset_texts, stored_texts, variant_texts
from tests.support.raised_texts import said_by

ROOT = Path(emulator.__file__).parent
READERS = [
    *sorted((ROOT / "files").glob("*.py")),
    *sorted((ROOT / "engine" / "scenario").glob("*.py")),
    ROOT / "pages" / "drafts.py",
]
RAISERS = {"error": 1, "_refuse": 0, "ScenarioError": 1, "ScenarioFileError": 3, "_note": 0, "note": 0}
# Frames of other sentences; said on the command line alone, or of JSON that no visitor writes.
ENGLISH_ALONE = (
    "X has no effect: X",
    "cc_config.xml: X",
    "there is none in",
    "unknown file; allowed",
    "cannot be read",
    "the scenario has no",
    "the first must be",
    "no line names the columns",
)


def test_the_pages_know_every_fault_and_note_of_the_readers() -> None:
    said = {text for path in READERS for text in said_by(path, RAISERS)}
    assert len(said) > 40
    unknown = [
        text
        for text in said
        if not text.startswith(ENGLISH_ALONE)
        and not any(stored_texts.is_known(each) for each in (text, text.replace("X: ", "", 1)))
    ]
    assert unknown == []


@pytest.mark.parametrize(
    ("stored", "german"),
    [
        ("A: finished tasks in the file are left out", "A: Fertige Aufgaben in der Datei werden weggelassen"),
        (
            "client_state.xml, line 3, <p_ncpus>: not an integer from 1 to 4096",
            "client_state.xml, Zeile 3, <p_ncpus>: keine ganze Zahl von 1 bis 4096",
        ),
        ("A: b.share: nan is not a number from 0 to 1", "A: b.share: nan ist keine Zahl von 0 bis 1"),
        ("Files that were read: a, b", "Gelesene Dateien: a, b"),
        (
            "Other files of the ZIP, which were not opened: 3",
            "Andere Dateien der ZIP-Datei, die nicht geöffnet wurden: 3",
        ),
        ("ZIP: it has more than 20000 files", "ZIP: Sie hat mehr als 20000 Dateien"),
        ("what an older release said", "what an older release said"),
    ],
)
def test_what_is_stored_in_english_is_shown_in_german(stored: str, german: str) -> None:
    with override("de"):
        assert stored_texts.shown(stored) == german
    assert stored_texts.shown(stored) == stored


def test_a_variant_is_shown_in_german_with_its_value() -> None:
    with override("de"):
        assert variant_texts.shown("Debt with preemption") == "Schuld mit Verdrängung"
        assert variant_texts.shown("Debt with preemption, 0.5") == "Schuld mit Verdrängung, 0.5"
        assert variant_texts.shown("Single long-term debt, CPU time only").endswith("nur CPU-Zeit")


def test_the_source_of_an_experiment_is_in_words() -> None:
    assert stored_texts.origin("example:n10_projects") == "example “Ten projects, eight CPUs”"
    assert stored_texts.origin("computer:attic: 2") == "computer attic: 2"
    assert stored_texts.origin("uploaded long ago") == "uploaded long ago"


@pytest.mark.parametrize("language", ["en", "de"])
def test_every_example_and_every_decision_has_words(language: str) -> None:
    with override(language):
        offered = list(preset_texts.offered())
        sentences = {reason: decision_texts.sentence(reason) for reason in Reason}
    assert [each["key"] for each in offered] == [each.key for each in PRESETS]
    assert all(each["title"] and each["shows"].endswith(".") for each in offered)
    for reason in set(Reason) - {Reason.NONE}:
        words = decision_texts.in_words(sentences[reason], job=7, project="A", kind="CPU", time="1 s")
        assert "%" not in words and ("7" in words or "A" in words)


def test_a_failed_task_is_told_with_the_wait_that_follows() -> None:
    words = decision_texts.in_words(
        decision_texts.sentence(Reason.JOB_FAILED), job=7, project="A", kind="CPU", time="2 m"
    )
    assert words == "Task 7 failed. A is not contacted for 2 m."


def test_every_reason_why_an_element_is_not_used_has_words() -> None:
    reasons = [value for name, value in vars(unused).items() if name.isupper() and isinstance(value, str)]
    assert len(reasons) >= 12
    assert [why for why in reasons if not stored_texts.is_known(why)] == []
