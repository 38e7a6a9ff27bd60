"""Goals, variants and parameters are shown in the reader's language."""

from __future__ import annotations

import pytest
from django.utils.translation import override

from extras.laboratory import texts
from extras.laboratory.trials.experiment import Variant
from extras.laboratory.trials.parameters import CHEATS, PARAMETERS
from portal.languages.messages import Message
from portal.languages.sentences import sentence


@pytest.fixture(autouse=True)
def german() -> object:
    with override("de"):
        yield


def test_a_goal_is_named_in_german_with_all_that_it_has() -> None:
    way = [Message("way_pairs"), "host_scale_check"]
    goal = Message("goal_picking_failing", cheat=Message("picking_in_turns"), percent=3, way=way)
    shown = sentence(goal)
    assert str(goal) == "picking by compute errors, in turns, others fail 3%: gain (two replicas, host_scale_check)"
    assert shown.startswith("Auswählen durch Rechenfehler") and "zwei " in shown and "3\u202f%" in shown


def test_a_variant_keeps_the_names_of_rules_and_limits() -> None:
    label = Variant("letter", host_scale_check=True, limits={"host_avg_weight": 0.02}).label
    assert sentence(label) == "letter, einzelne Ergebnisse, host_scale_check, host_avg_weight 0.02"


@pytest.mark.parametrize("name", PARAMETERS)
def test_each_parameter_has_a_german_label_and_help(name: str) -> None:
    parameter = PARAMETERS[name]
    with override("en"):
        before = texts.label(parameter), texts.help_text(parameter)
    assert "%(" not in texts.label(parameter) + texts.help_text(parameter)
    assert texts.help_text(parameter) != before[1] and (texts.label(parameter) != before[0] or name == "hosts")


def test_each_way_of_cheating_has_a_phrase() -> None:
    assert {phrase.code for phrase, _ in CHEATS.values()} == {f"cheat_{cheat.name.lower()}" for cheat in CHEATS}
