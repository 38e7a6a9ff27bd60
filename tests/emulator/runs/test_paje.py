"""Timelines as Paje traces: read back by a strict reader written from the format's definition, and by pj_dump."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections import defaultdict
from dataclasses import dataclass, field
from dataclasses import replace as changed
from pathlib import Path
from typing import Any

import pytest

from emulator.engine.policies.registry import make_policy
from emulator.engine.run import run
from emulator.engine.scenario import Scenario
from emulator.files.presets import preset
from emulator.runs import paje
from emulator.runs.packed_timeline import Packed, pack, unpack

TYPES = {"date": float, "int": int, "double": float, "string": str, "color": str}


@dataclass
class Trace:
    """A Paje trace, read by "Pajé trace file format" 1.3; anything that it calls invalid is an assertion."""

    types: dict[str, tuple[str, str]] = field(default_factory=dict)  # alias: what, and the parent type
    values: dict[str, str] = field(default_factory=dict)  # alias: its type
    names: dict[str, str] = field(default_factory=dict)
    containers: dict[str, str] = field(default_factory=dict)  # alias: its type
    states: dict[tuple[str, str], list[tuple[float, str, int]]] = field(default_factory=lambda: defaultdict(list))
    events: dict[str, list[tuple[float, str]]] = field(default_factory=lambda: defaultdict(list))
    variables: dict[str, list[tuple[float, float]]] = field(default_factory=lambda: defaultdict(list))
    end: float = 0.0

    def read(self, text: str) -> Trace:
        definitions: dict[int, tuple[str, list[tuple[str, str]]]] = {}
        open_number = -1
        for line in text.splitlines():
            words = line.removeprefix("%").split()
            if line.startswith("%EventDef"):
                open_number = int(words[2])
                assert open_number not in definitions
                definitions[open_number] = (words[1], [])
            elif line == "%EndEventDef":
                open_number = -1
            elif line.startswith("%"):
                assert open_number >= 0 and words[1] in TYPES
                definitions[open_number][1].append((words[0], words[1]))
            else:
                number, *cells = shlex.split(line)
                name, fields = definitions[int(number)]
                assert len(cells) == len(fields), line
                self.take(name, {f: TYPES[kind](cell) for (f, kind), cell in zip(fields, cells, strict=True)})
        return self

    def take(self, name: str, said: dict[str, Any]) -> None:
        if "Time" in said:
            assert said["Time"] >= self.end, "events are in order of time"
            self.end = said["Time"]
        if name.startswith("PajeDefine"):
            assert said["Alias"] not in {*self.types, *self.values, "0"}
            self.names[said["Alias"]] = said["Name"]
        if name == "PajeDefineEntityValue":
            assert self.types[said["Type"]][0] in ("State", "Event")
            assert all(0 <= float(part) <= 1 for part in said["Color"].split()) and len(said["Color"].split()) == 3
            self.values[said["Alias"]] = said["Type"]
        elif name.startswith("PajeDefine"):
            assert said["Type"] == "0" or self.types[said["Type"]][0] == "Container"
            self.types[said["Alias"]] = (name.removeprefix("PajeDefine").removesuffix("Type"), said["Type"])
        elif name == "PajeCreateContainer":
            what, parent = self.types[said["Type"]]
            assert what == "Container" and said["Alias"] not in self.containers
            assert parent == self.containers.get(said["Container"], "0")
            assert said["Name"] not in {self.names[alias] for alias in self.containers}
            self.containers[said["Alias"]], self.names[said["Alias"]] = said["Type"], said["Name"]
        elif name == "PajeDestroyContainer":
            assert self.containers.pop(said["Name"]) == said["Type"]
        else:
            what, parent = self.types[said["Type"]]
            assert self.containers[said["Container"]] == parent
            value, container = said["Value"], said["Container"]
            if what == "State":
                assert name == "PajeSetState" and self.values[value] == said["Type"]
                self.states[said["Type"], container].append((said["Time"], value, said["Job"]))
            elif what == "Event":
                assert name == "PajeNewEvent" and self.values[value] == said["Type"]
                self.events[said["Type"]].append((said["Time"], value))
            else:
                assert (what, name) == ("Variable", "PajeSetVariable")
                self.variables[said["Type"]].append((said["Time"], value))


def made(scenario: Scenario, days: float = 2.0) -> Packed:
    return unpack(pack(run(scenario, make_policy("rec", scenario, {}), days, 1)))


def busy_secs(trace: Trace, lane: str) -> dict[int, float]:
    """By project: how long the containers of a lane have its state."""
    found: dict[int, float] = defaultdict(float)
    for (kind, container), changes in trace.states.items():
        if kind == "WORK" and container.split("_")[0] == lane:
            ends = [*(since for since, *_rest in changes[1:]), trace.end]
            for (since, value, _job), until in zip(changes, ends, strict=True):
                if value != "idle":
                    found[int(value[1:])] += until - since
    return dict(found)


@pytest.mark.parametrize("name", ["s4_shares_60_30_10", "document-gpu-and-cpu"])
def test_a_trace_is_valid_and_says_what_the_timeline_says(name: str) -> None:
    packed = made(preset(name).scenario)
    trace = Trace().read("".join(paje.lines(packed)))
    assert trace.end == packed.texts["duration_secs"] and not trace.containers
    blocks = {column: packed[f"blocks.{column}"] for column in ("start_secs", "end_secs", "lane", "project")}
    for lane in range(len(packed.texts["lanes"])):
        mine = blocks["lane"] == lane
        for project in range(len(packed.texts["projects"])):
            rows = mine & (blocks["project"] == project)
            known = float((blocks["end_secs"][rows] - blocks["start_secs"][rows]).sum())
            assert busy_secs(trace, f"l{lane}").get(project, 0.0) == pytest.approx(known, abs=1e-3)
    assert len(trace.events["RPC"]) == len(packed["rpcs.at_secs"])
    assert len(trace.variables) == len(packed.texts["kinds"])


def test_jobs_that_share_a_gpu_each_have_a_container() -> None:
    scenario = preset("document-gpu-and-cpu").scenario
    halves = tuple(
        changed(
            project,
            apps=tuple(
                changed(app, versions=tuple(changed(v, gpus=0.5) if v.gpu else v for v in app.versions))
                for app in project.apps
            ),
        )
        for project in scenario.projects
    )
    trace = Trace().read("".join(paje.lines(made(changed(scenario, projects=halves)))))
    assert {"NVIDIA 0 (1)", "NVIDIA 0 (2)"} <= set(trace.names.values())


def test_names_with_quotes_spaces_and_lines_stay_one_field() -> None:
    scenario = preset("s1_two_equal_cpu").scenario
    first, *others = scenario.projects
    odd = changed(scenario, projects=(changed(first, name='Fish & "chips"\n% 7 \u2028'), *others))
    trace = Trace().read("".join(paje.lines(made(odd, 0.5))))
    assert trace.names["p0"] == "Fish & 'chips' % 7  "


@pytest.mark.skipif(shutil.which("pj_dump") is None, reason="pj_dump (of pajeng) is not installed")
def test_pj_dump_reads_it(tmp_path: Path) -> None:
    packed = made(preset("s4_shares_60_30_10").scenario)
    file = tmp_path / "schedule.paje"
    file.write_text("".join(paje.lines(packed)))
    done = subprocess.run(["pj_dump", str(file)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    rows = [line.split(", ") for line in done.stdout.splitlines()]
    worked = sum(float(row[5]) for row in rows if row[:3:2] == ["State", "Work"] and row[-1] != "idle")
    known = float((packed["blocks.end_secs"] - packed["blocks.start_secs"]).sum())
    assert worked == pytest.approx(known, rel=1e-4)
