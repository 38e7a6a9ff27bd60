"""Sentences that are stored in English are shown in the reader's language."""

from __future__ import annotations

import pytest
from django.utils.translation import override

from extras.laboratory import texts
from extras.laboratory.texts import translated
from extras.laboratory.trials.experiment import Variant
from extras.laboratory.trials.goals import _PICKING, WAYS
from extras.laboratory.trials.parameters import CHEATS, PARAMETERS


@pytest.fixture(autouse=True)
def german() -> object:
    with override("de"):
        yield


def test_a_sentence_that_nobody_marked_stays_as_it_is() -> None:
    assert translated("50 % of (anything)+", texts.GOALS) == "50 % of (anything)+"


@pytest.mark.parametrize("cheat", [words for words, _ in CHEATS.values()])
def test_the_gain_of_each_way_of_cheating_is_named_in_german(cheat: str) -> None:
    shown = texts.goal(f"gain of those who {cheat}, per FLOP")
    assert shown.startswith("Gewinn derer, die ") and cheat not in shown


@pytest.mark.parametrize("words", _PICKING.values())
@pytest.mark.parametrize("way", WAYS)
def test_the_goals_of_the_document_are_named_in_german(words: str, way: str) -> None:
    shown = texts.goal(f"picking by {words}: gain ({way}, host_scale_check)")
    assert shown.startswith("Auswählen durch ") and words not in shown and way not in shown


def test_a_variant_keeps_the_names_of_rules_and_limits() -> None:
    label = Variant("letter", host_scale_check=True, limits={"host_avg_weight": 0.02}).label
    assert texts.variant(label) == "letter, einzelne Ergebnisse, host_scale_check, host_avg_weight 0.02"


@pytest.mark.parametrize("name", PARAMETERS)
def test_each_parameter_has_a_german_label_and_help(name: str) -> None:
    parameter = PARAMETERS[name]
    with override("en"):
        before = texts.label(parameter), texts.help_text(parameter)
    assert "%(" not in texts.label(parameter) + texts.help_text(parameter)
    assert texts.help_text(parameter) != before[1] and (texts.label(parameter) != before[0] or name == "hosts")
