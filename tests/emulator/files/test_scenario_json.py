"""Scenarios and documents as JSON and back."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from emulator.engine.policies.names import PolicyName
from emulator.engine.policies.registry import make_policy
from emulator.engine.run import run
from emulator.engine.scenario import (
    CPU,
    Availability,
    ChangePreferences,
    ChangeProcessor,
    Downtime,
    Host,
    Processor,
    Project,
    Scenario,
    ScenarioError,
    Standing,
    Unused,
)
from emulator.files.presets import PRESETS, preset
from emulator.files.scenario_json import (
    DOCUMENT_BYTES_MAX,
    Document,
    Parameters,
    document_json,
    from_document,
    from_json,
    read_document,
    to_json,
)

SMALL = Scenario(
    Host((Processor(CPU, 1, 1e9),), name="små"),
    (Project("A", 1, downtimes=(Downtime(1, 2, 3),), standing=Standing(ltd_secs=((CPU, -1.0),))),),
    events=(ChangeProcessor(1.0, CPU, instances=2), ChangePreferences(2.0, report_at_once=True)),
)


LARGER = Parameters(work_buf_additional_days=1.0)


def small(**changes: Any) -> dict[str, Any]:
    return {**document_json(Document(SMALL)), **changes}


def test_a_scenario_survives_its_json() -> None:
    for scenario in (preset("s1_two_equal_cpu").scenario, preset("s2_gpu_example1").scenario, SMALL):
        assert from_json(json.loads(json.dumps(to_json(scenario)))) == scenario


def test_a_document_survives_its_json() -> None:
    document = Document(SMALL, 3.5, PolicyName.LTD, True, Parameters(half_life_days=2.0, eligibility_rule=False), 7)
    text = json.dumps(document_json(document))
    assert read_document(text.encode()) == document
    assert json.loads(text)["parameters"] == {"half_life_days": 2.0, "eligibility_rule": False}


def test_a_document_of_the_present_presets_fits_into_a_file() -> None:
    for each in PRESETS:
        text = json.dumps(document_json(Document(each.scenario)), indent=1).encode()
        assert len(text) < DOCUMENT_BYTES_MAX / 10
        assert read_document(text).scenario == each.scenario


def test_the_same_figures_follow_from_a_document() -> None:
    document = Document(preset("s4_shares_60_30_10").scenario, 10.0, parameters=LARGER)
    again = read_document(json.dumps(document_json(document)).encode())
    results = [
        run(each.applied(), make_policy(each.policy, each.scenario, each.parameters.as_dict()), each.days, each.seed)
        for each in (document, again)
    ]
    assert (results[0].figures, results[0].projects) == (results[1].figures, results[1].projects)
    assert again.applied().preferences.work_buf_additional_days == 1.0


def test_an_unused_element_is_counted_up_to_what_json_programs_hold() -> None:
    # Programs that keep JSON's numbers as doubles hold whole ones up to 2**53 - 1 = 9,007,199,254,740,991.
    most = replace(SMALL, unused=(Unused("client_state.xml", "active_task", 9_007_199_254_740_991, ""),))
    assert from_json(json.loads(json.dumps(to_json(most)))).unused == most.unused
    with pytest.raises(ScenarioError, match=r"unused\.count: 9,007,199,254,740,992 is not a number from 0"):
        replace(SMALL, unused=(Unused("client_state.xml", "active_task", 9_007_199_254_740_992, ""),))


def test_what_an_export_has_beside_it_is_passed_over() -> None:
    whole = small(
        experiment="x",
        variant="y",
        figures_of_merit={"idle": 0},
        projects=[1],
        cpu_secs=0.1,
        **{"$schema": "https://…"},
    )
    assert from_document(whole) == Document(SMALL)


def test_a_trace_survives_json() -> None:
    scenario = preset("s1_two_equal_cpu").scenario
    on = Availability.of_trace(((0.5, 10.25), (20.0, 100.0)), 100.0)
    scenario = replace(scenario, host=replace(scenario.host, on=on))
    assert from_json(json.loads(json.dumps(to_json(scenario)))) == scenario


@pytest.mark.parametrize("data", [None, [], {}, {"host": 1}, {"projects": "x"}])
def test_json_that_is_no_scenario_is_refused(data: Any) -> None:
    with pytest.raises(ScenarioError):
        from_json(data)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ([], "document: it is not an object"),
        ({}, "version: it is missing: this site reads version 1"),
        (small(version=2), "version: 2 is not known: this site reads version 1"),
        (small(version=True), "version: True is not known"),
        (small(more=1), "document: unknown: more"),
        (small(days=0), "days: 0 is not a number from 0.001 to 1e+06"),
        (small(days="3"), "days: 3 is not a number"),
        (small(days=10**400), "days: 1000"),
        (small(seed=1.5), "seed: 1.5 is not a whole number"),
        (small(seed=-1), "seed: -1 is not a number from 0"),
        (small(quirks=1), "quirks: 1 is not true or false"),
        (small(policy="best"), "policy: best is none of rec, rec-letter, ltd"),
        (small(parameters={"half_life_days": 0}), "parameters.half_life_days: 0 is not"),
        (small(parameters={"x": 0}), "parameters: unknown: x"),
        (small(scenario=None), "scenario: it has the wrong type"),
        (small(scenario={}), "scenario.host: it is missing"),
        (small(scenario={"host": {"processors": [{"kind": 5}]}}), "scenario.host.processors[0].kind: 5 is not text"),
        (
            small(scenario={**to_json(SMALL), "events": [{"event": "Explode", "at_secs": 0}]}),
            "scenario.events[0]: event is none of Attach, Detach",
        ),
        (
            small(scenario={**to_json(SMALL), "events": [{"event": "Attach", "at_secs": 0, "project": "B"}]}),
            "event.project: the scenario has no project B",
        ),
        (small(scenario={**to_json(SMALL), "name": "a\0"}), "name: the character NUL is not allowed"),
        (small(scenario={**to_json(SMALL), "name": "\ud800"}), "name: it is not Unicode text"),
    ],
)
def test_what_is_wrong_with_a_document_is_said_with_its_place(data: Any, said: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        from_document(data)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b'{"version": NaN}', b"[" * 100_000, b"\xff", b"1" * 5000, b" " * (DOCUMENT_BYTES_MAX + 1)],
    ids=["empty", "cut off", "NaN", "deep", "not UTF-8", "long number", "too large"],
)
def test_a_file_that_is_no_json_is_refused(text: bytes) -> None:
    with pytest.raises(ScenarioError, match=r"document: the file is|document: it is not an object"):
        read_document(text)
