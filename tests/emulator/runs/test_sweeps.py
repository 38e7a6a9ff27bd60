"""What can be varied from run to run, and how its values are read."""

from __future__ import annotations

import pytest

from emulator.engine.scenario import Availability, Scenario, ScenarioError
from emulator.files.presets import preset
from emulator.pages.texts import parameter_texts
from emulator.runs.sweeps import PARAMETERS, full_names, read_values, split, with_parameters
from tests.support.emulator_experiments import example


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1", [1]),
        ("2, 0.5;1 1", [0.5, 1, 2]),
        # Both ends; tenths are not summed in binary, where 3 * 0.1 is not 0.3.
        ("0:0.4:0.1", [0, 0.1, 0.2, 0.3, 0.4]),
        ("0:1:0.4", [0, 0.4, 0.8]),
        ("5:5:1", [5]),
        ("0:2:1 10", [0, 1, 2, 10]),
    ],
)
def test_values_are_numbers_and_ranges(text: str, values: list[float]) -> None:
    assert read_values(text) == values


@pytest.mark.parametrize(
    "text", ["x", "1:2", "1:2:3:4", "0:5:0", "5:0:1", "0:5:-1", "nan", "inf", "0:inf:1", "1e304", "0:1e9:1", "0:1:1e-9"]
)
def test_other_values_are_refused(text: str) -> None:
    with pytest.raises(ScenarioError, match="sweep"):
        read_values(text)


def test_each_parameter_changes_what_it_names() -> None:
    def value_of(scenario: Scenario, name: str) -> float:
        preferences = scenario.preferences
        found = {
            "cpus": scenario.host.processors[0].instances,
            "on_fraction": scenario.host.on.fraction,
            "share:B": scenario.project("B").share,
            "max_concurrent:B": scenario.project("B").apps[0].max_concurrent,
        }
        return float(found[name] if name in found else getattr(preferences, name))

    base = example()
    for name, value in [
        ("work_buf_min_days", 3.0),
        ("work_buf_additional_days", 4.0),
        ("period_secs", 600.0),
        ("max_cpus_percent", 50.0),
        ("cpus", 16.0),
        ("on_fraction", 0.25),
        ("share:B", 80.0),
        ("max_concurrent:B", 2.0),
    ]:
        assert value_of(base, name) != value
        assert value_of(with_parameters(base, {name: value}), name) == value
    # These are the policy's own.
    assert with_parameters(base, {"half_life_days": 3, "eligibility_rule": False}) == base


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"turbo": 1}, "turbo"),
        ({"share": 1}, "share:PROJECT"),
        ({"cpus:A": 1}, "is none of"),
        ({"share:C": 1}, "no project C"),
        ({"cpus": 1.5}, "1.5 is not a whole number"),
        ({"cpus": 0}, "0 is not a whole number from 1"),
        ({"half_life_days": 1e9}, "not a number from 0.01 to 10,000"),
    ],
)
def test_parameters_that_do_not_exist_or_fit_are_refused(parameters: dict[str, float], said: str) -> None:
    with pytest.raises(ScenarioError, match=said):
        with_parameters(example(), parameters)


def test_the_fraction_of_a_computer_that_follows_a_trace_cannot_be_varied() -> None:
    from dataclasses import replace

    base = example()
    traced = replace(base, host=replace(base.host, on=Availability.of_trace(((0.0, 50.0),), 100.0)))
    with pytest.raises(ScenarioError, match="follows a trace"):
        with_parameters(traced, {"on_fraction": 0.5})


def test_the_short_names_of_the_command_line_are_the_same_parameters() -> None:
    assert split("buffer") == ("work_buf_min_days", "")
    assert split("half_life") == ("half_life_days", "")
    assert split("share:A: the first") == ("share", "A: the first")


def test_every_parameter_has_words_and_the_page_offers_it() -> None:
    assert set(parameter_texts.TEXTS) == set(PARAMETERS)
    names = full_names(preset("s1_two_equal_cpu").scenario)
    assert [name for name in names if name.startswith("share")] == ["share:A", "share:B"]
    assert parameter_texts.with_unit("work_buf_min_days") == "Minimum buffer (days)"
    assert parameter_texts.setting("share:A", 20) == "Share of A: 20"
    assert parameter_texts.setting("gone", 20) == "gone: 20"
