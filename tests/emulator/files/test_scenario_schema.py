"""The published JSON Schema and the reader agree."""

from __future__ import annotations

import copy
import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import fields
from typing import Any, get_args

import jsonschema
import pytest

from emulator.engine.scenario import (
    CPU,
    App,
    Attach,
    Availability,
    Backoffs,
    ChangeBuffer,
    ChangePreferences,
    ChangeProcessor,
    ChangeShare,
    DayHours,
    Detach,
    Downtime,
    Event,
    ExcludedGpu,
    HasWork,
    Host,
    Hours,
    NewApp,
    NoNewTasks,
    Normal,
    Preferences,
    Processor,
    Project,
    Scenario,
    ScenarioError,
    ServerUp,
    Standing,
    StartJob,
    StartState,
    Suspend,
    Unused,
    Use,
    Version,
)
from emulator.files.presets import PRESETS
from emulator.files.scenario_json import RESULT_KEYS, Document, Parameters, document_json, from_document
from emulator.files.scenario_schema import document_schema
from portal.languages.messages import VERBATIM, Message

SCHEMA = document_schema("https://example.org/emulator/scenario.schema.json")
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
APP = App("x", (Version(1e9), Version(1e10, 0.1, "NVIDIA", 1.0)), Normal(1e12, 1e10), Normal(1e12), 1e5, error_rate=0.1)
EVENTS: tuple[Event, ...] = (
    Attach(1, "B"),
    Detach(2, "A"),
    NewApp(3, "B", APP),
    HasWork(4, "A", False),
    ServerUp(5, "A", False),
    ChangeShare(6, "A", 5),
    Suspend(7, "A", True),
    NoNewTasks(8, "A", True),
    ChangeBuffer(9, 1, 1),
    ChangePreferences(10, 1, 1, 600, 50, True),
    ChangeProcessor(11, "NVIDIA", 2, 2e10),
)
WHOLE = Document(
    Scenario(
        Host(
            (Processor(CPU, 2, 1e9), Processor("NVIDIA", 1, 1e10, 0.2)),
            on=Availability.of_trace(((0.0, 50.0), (60.0, 100.0)), 100.0),
            in_use=Use(0.5, hours=Hours(8, 18)),
        ),
        (
            Project(
                "A",
                100,
                (APP,),
                standing=Standing(1, (("CPU", -5),), 2),
                backoffs=Backoffs(1, 2, 3, ((CPU, 4, 5),)),
                not_asked=("ATI",),
                downtimes=(Downtime(1, 2, 3),),
                priority=1,
                excluded_gpus=(ExcludedGpu("NVIDIA", 0, "x"),),
            ),
            Project("B", 50, attached=False),
        ),
        Preferences(compute_hours=Hours(22, 6, (DayHours(0, 0, 24),))),
        jobs=(StartJob("A", "x", 1e12, 1e12, 1e5, 1, StartState.BEGUN, 0.5, -10, 0, "job 1"),),
        events=EVENTS,
        notes=(Message("left_out_project", name="A"), Message(VERBATIM, text="a note")),
        unused=(Unused("client_state.xml", "host_info/p_vendor", 2, "it changes nothing"),),
    ),
    parameters=Parameters(1.0, True, 1.0, 1.0, 600.0),
)
# What a schema cannot say: which names there are, and rules between several fields.
BETWEEN_FIELDS = re.compile(
    "the scenario has no|its version cannot run|the first must be CPU|two entries have the same type|two projects have|"
    "needs a share above 0|must use some CPU|less than a millisecond|longer than the downtime|it changes nothing|"
    "at least one CPU|give the number and the speed|on.trace"
)
OTHERS: tuple[Any, ...] = (None, True, "x", "", "a\0", -1, 0, 1.5, 7, 1e30, [], [1], {}, {"x": 1})


def test_it_is_a_schema_of_the_named_draft() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == VALIDATOR.META_SCHEMA["$id"]
    assert SCHEMA["$id"] == "https://example.org/emulator/scenario.schema.json"
    assert json.loads(json.dumps(SCHEMA)) == SCHEMA


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.key)
def test_every_preset_fits(preset: Any) -> None:
    VALIDATOR.validate(json.loads(json.dumps(document_json(Document(preset.scenario, preset.days)))))


def test_the_example_has_every_event_and_every_field() -> None:
    assert [type(event) for event in EVENTS] == list(get_args(Event))
    assert {field.name for field in fields(Parameters)} == set(WHOLE.parameters.as_dict())


def test_every_number_and_list_has_its_limits() -> None:
    # A field without a limit is one that no check knows: give its type a Between, a Chars or a Count.
    unlimited = [
        f"{name}.{field}"
        for name, part in SCHEMA["$defs"].items()
        for field, schema in part["properties"].items()
        for each in schema.get("anyOf", [schema])
        if (each.get("type") in ("number", "integer") and "minimum" not in each)
        or (each.get("type") == "array" and "maxItems" not in each)
        or (each.get("type") == "string" and "maxLength" not in each)
    ]
    assert unlimited == []


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    rows = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in rows:
        yield from places(part, (*path, key))


def changed(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    data = copy.deepcopy(data)
    place = data
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return data


def complaint(data: Any) -> str:
    """What the reader says; empty if it reads it."""
    try:
        from_document(data)
    except ScenarioError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.long)], ids=["every fifth", "all"])
def test_the_reader_and_the_schema_refuse_the_same_values(step: int) -> None:
    whole = json.loads(json.dumps(document_json(WHOLE)))
    assert complaint(whole) == ""
    VALIDATOR.validate(whole)
    # Five does not divide the number of other values: each of them is put at a fifth of the places.
    cases = list(itertools.islice(itertools.product(places(whole), OTHERS), 0, None, step))
    assert len(cases) > 2000 / step
    for path, other in cases:
        data = changed(whole, path, other)
        fits, said = VALIDATOR.is_valid(data), complaint(data)
        if fits:
            assert not said or BETWEEN_FIELDS.search(said), (path, other, said)
        else:
            assert said, (path, other)


def test_a_key_that_is_not_known_fits_nowhere() -> None:
    whole = json.loads(json.dumps(document_json(WHOLE)))
    for path in places(whole):
        # The arguments of a note have the names that its code gives them.
        is_closed = _is_object(whole, path) and path[-1:] != ("args",)
        data = changed(whole, (*path, "surplus"), 1) if is_closed else None
        if data is not None:
            assert not VALIDATOR.is_valid(data), path
            assert "unknown: surplus" in complaint(data), path


def _is_object(data: Any, path: tuple[Any, ...]) -> bool:
    for key in path:
        data = data[key]
    return isinstance(data, dict)


def test_what_an_export_has_beside_it_fits() -> None:
    data = json.loads(json.dumps(document_json(WHOLE))) | {key: {"any": 1} for key in RESULT_KEYS}
    VALIDATOR.validate(data | {"$schema": "https://example.org/"})


@pytest.mark.parametrize("version", [None, 0, 2, "1", True])
def test_only_the_present_version_fits(version: Any) -> None:
    data = json.loads(json.dumps(document_json(WHOLE))) | {"version": version}
    assert not VALIDATOR.is_valid(data)
    assert complaint(data).startswith("version: ")
