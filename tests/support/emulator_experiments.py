"""Experiments by the pages: begin one, fill in its form, do the workers' part."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

from django.test import Client
from django.urls import reverse

from emulator.engine.scenario import CPU, Preferences, Processor, Scenario
from emulator.files.scenario_json import from_json
from emulator.models import Experiment
from emulator.pages.drafts import ProjectFacts, draft
from emulator.runs import process
from emulator.runs.worker import ProcessAnswer
from portal.languages.messages import Message
from portal.requested_work import queue


def begin(client: Client, key: str = "s1_two_equal_cpu") -> Experiment:
    answer = client.post(reverse("emulate_preset", args=[key]))
    assert answer.status_code == 302
    return Experiment.objects.latest("pk")


def trial(experiment: Experiment, **changes: Any) -> dict[str, Any]:
    """The set-up form as it is offered, with changes."""
    scenario = from_json(experiment.scenario)
    fields: dict[str, Any] = {
        "title": experiment.title,
        "days": "2",
        "policies": ["rec"],
        "seed": "1",
        "nseeds": "1",
        "work_buf_min_days": "0.1",
        "work_buf_additional_days": "0.5",
    }
    for number, processor in enumerate(scenario.host.processors):
        fields |= {f"instances{number}": processor.instances, f"gflops{number}": processor.peak_flops / 1e9}
    for number, project in enumerate(scenario.projects):
        fields[f"share{number}"] = project.share
    return {**fields, **changes}


def run_here(order: dict[str, Any], data: bytes, secs_max: int, report: Callable[[float], None]) -> ProcessAnswer:
    """In place of `emulator.runs.worker.run_process`: what the process answers, without starting it, or limits."""
    said, packed = process.work({**order, "secs_max": secs_max}, io.BytesIO(data))
    said = json.loads(json.dumps(said))
    fault = Message.from_json(said["fault"]) if "fault" in said else None
    return ProcessAnswer(said.get("ok"), packed, fault)


def carry_out() -> int:
    """Do what workers would do, until nothing waits; how many pieces that were."""
    done = 0
    while queue.carry_out_next():
        done += 1
    return done


def example() -> Scenario:
    facts = [ProjectFacts("A", 75, {CPU: 1.0}), ProjectFacts("B", 25, {CPU: 2.0})]
    return draft([Processor(CPU, 2, 4e9)], facts, Preferences())
