"""What the emulator stores in English is shown in the visitor's language, and everything has words."""

from __future__ import annotations

import json
import math

import pytest
from django.utils.translation import override

from emulator.engine.scenario import ScenarioError
from emulator.engine.timeline.reasons import Reason
from emulator.files import unused
from emulator.files.presets import PRESETS
from emulator.files.sections import ScenarioFileError
from emulator.pages.texts import decision_texts, preset_texts, variant_texts
from portal.languages.messages import Message, declared
from portal.languages.sentences import sentence


@pytest.mark.parametrize(
    ("stored", "german"),
    [
        (
            ScenarioFileError("client_state.xml", "p_ncpus", 3, "not_an_integer", low=1, high=4096),
            "client_state.xml, Zeile 3, <p_ncpus>: keine ganze Zahl von 1 bis 4\u202f096",
        ),
        (
            ScenarioError("A: b.share", "not_in_range", value=math.nan, low=0, high=1),
            "A: b.share: nan ist keine Zahl von 0 bis 1",
        ),
        (ScenarioFileError("ZIP", "", 0, "zip_files_limit", limit=20000), "ZIP: Sie hat mehr als 20\u202f000 Dateien"),
    ],
)
def test_what_is_wrong_with_a_scenario_is_shown_in_german(stored: ScenarioError, german: str) -> None:
    with override("de"):
        assert sentence(Message.from_json(json.loads(json.dumps(stored.message.to_json())))) == german


def test_a_variant_is_shown_in_german_with_its_value() -> None:
    with override("de"):
        assert variant_texts.label_of("Debt with preemption") == "Schuld mit Verdrängung"
        assert variant_texts.label_of("Debt with preemption, 0.5") == "Schuld mit Verdrängung, 0.5"
        assert variant_texts.label_of("Single long-term debt, CPU time only").endswith("nur CPU-Zeit")


def test_the_source_of_an_experiment_is_in_words() -> None:
    computers = {7: "attic: 2"}
    assert preset_texts.origin("example:n10_projects", {}) == "example “Ten projects, eight CPUs”"
    assert preset_texts.origin("computer:7", computers) == "computer attic: 2"
    assert preset_texts.origin("computer:8", computers) == "a computer"  # gone, or somebody else's
    assert preset_texts.origin("uploaded long ago", {}) == "uploaded long ago"


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
    codes = [value for name, value in vars(unused).items() if name.isupper() and isinstance(value, str)]
    assert len(codes) >= 12
    assert [code for code in codes if code not in declared()] == []
