"""The scenario editor: memory, the owner's use of the computer, and parts without fields."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from emulator.engine.scenario import (
    CPU,
    DAY_SECS,
    App,
    Availability,
    Backoffs,
    ChangeBuffer,
    ChangePreferences,
    DayHours,
    Host,
    Hours,
    NewApp,
    Normal,
    Preferences,
    Processor,
    Project,
    Scenario,
    Standing,
    StartJob,
    StartState,
    Unused,
    Use,
    Version,
)
from emulator.files.scenario_json import Document, document_json, to_json
from emulator.models import Experiment
from extras.scenario_editor import hidden, hour_fields
from extras.scenario_editor.fields import EVENTS, PREFERENCES, PROJECT
from extras.scenario_editor.rows import AppRow, HostRow
from extras.scenario_editor.tests.editor_page import EditorPage
from portal.languages.messages import Message
from tests.support.page_text import text_of


def test_memory_and_what_the_owner_does_are_typed(page: EditorPage) -> None:
    saved = page.press(
        "save",
        host__ram_gib="16",
        host__in_use_percent="40",
        host__in_use_hours="2",
        host__in_use_from="9",
        host__in_use_until="17.5",
        host__in_use_days="Sun 24 0",
        host__on_batteries_percent="10",
        host__exclusive_gpu_app_percent="5",
        host__exclusive_gpu_app_hours="0.5",
        preferences__run_if_user_active="",
        preferences__ram_busy_percent="25",
        projects__0__apps__0__memory_mib="512",
    )
    assert saved.status_code == 302, saved.context["errors"]
    scenario = page.scenario()
    host = scenario.host
    assert host.ram_bytes == 16 * 2**30
    assert host.in_use == Use(0.4, 7200.0, Hours(9.0, 17.5, (DayHours(0, 24.0, 0.0),)))
    assert (host.on_batteries, host.exclusive_app, host.exclusive_gpu_app) == (Use(0.1), Use(), Use(0.05, 1800.0))
    assert not scenario.preferences.run_if_user_active and scenario.preferences.ram_busy_fraction == 0.25
    assert scenario.projects[0].apps[0].working_set_bytes == 512 * 2**20
    assert scenario.projects[1].apps[0].working_set_bytes == 0

    again = EditorPage(page.client, page.experiment)
    assert again.fields["host-in_use_days"] == "Sun 24 0" and again.fields["host-ram_gib"] == "16"
    # Values that are set are not hidden in a closed part of the page.
    assert again.answer.context["rows"].host.are_uses_open()
    assert again.press("save").status_code == 302
    assert again.scenario() == scenario
    again = EditorPage(page.client, page.experiment)
    again.press("save", host__in_use_from="", host__in_use_until="", host__in_use_days="", host__in_use_percent="0")
    assert again.scenario().host.in_use == Use(0.0, 7200.0)


@pytest.mark.parametrize(
    ("field", "typed", "label", "said"),
    [
        ("host-ram_gib", "-1", "Memory (GiB; 0: no limit)", "At least 0.0."),
        ("host-in_use_percent", "101", "In use (% of these hours)", "At most 100.0."),
        ("host-in_use_hours", "0", "In use: hours at a time", "At least 0.000"),
        ("host-on_batteries_until", "25", "On batteries until (hour)", "At most 24.0."),
        ("host-exclusive_app_from", "", "Exclusive application from (hour)", "Enter both hours, or neither."),
        ("host-exclusive_gpu_app_days", "Sat 10", "Exclusive GPU application: days that differ", "Line 1: enter a day"),
        ("preferences-ram_busy_percent", "nan", "Memory to use while the computer is in use (%)", "Enter a number"),
        (
            "projects-0-apps-0-memory_mib",
            "1e30",
            "A, a: Memory of a running task (MiB; 0: not counted)",
            "At most 9536743164.0625.",
        ),
    ],
)
def test_wrong_memory_and_uses_are_told_at_their_field(
    page: EditorPage, field: str, typed: str, label: str, said: str
) -> None:
    refused = page.press("save", **{"host-exclusive_app_until": "8" if not typed else "", field: typed})
    assert refused.status_code == 400
    ((its_id, its_label, text),) = refused.context["errors"]
    assert (its_id, its_label) == (f"id_{field}", label) and said in text


def test_what_has_no_field_is_named_and_kept(signed_in: Client) -> None:
    recorded = Availability.of_trace(((0.0, 3600.0), (7200.0, 10_800.0)), 14_400.0)
    size = Normal(3600e9)
    app = App("two", (Version(1e9), Version(2e9, 2.0)), size, size, 7 * DAY_SECS)
    idle = App("idle", (Version(1e9),), size, size, 7 * DAY_SECS, non_cpu_intensive=True)
    a = Project(
        "A",
        80,
        (app, idle),
        available=recorded,
        standing=Standing(5.0, ((CPU, 3.0),), 7.0),
        uses_dcf=True,
        backoffs=Backoffs(10.0, 20.0, 1, ((CPU, 5.0, 60.0),)),
        not_asked=("NVIDIA",),
        error_delay_secs=30.0,
    )
    scenario = Scenario(
        Host((Processor(CPU, 2, 1e9),), on=recorded, exclusive_app=Use(0.1, hours=Hours(8, 20))),
        (a, Project("B", 20, (app,))),
        jobs=(StartJob("A", "two", 3600e9, 3600e9, DAY_SECS, 1, StartState.RUNNING, 0.5, -60.0, name="wu_1"),),
        events=(ChangeBuffer(DAY_SECS, 1.0, 2.0), NewApp(2 * DAY_SECS, "B", replace(idle, name="later"))),
        notes=(Message("begins_on_sunday"),),
        unused=(Unused("x.xml", "y", 2, "why"),),
    )
    file = SimpleUploadedFile("mine.json", json.dumps(document_json(Document(scenario))).encode())
    assert signed_in.post(reverse("emulate_json"), {"document": file}).status_code == 302
    page = EditorPage(signed_in, Experiment.objects.get())
    text = text_of(page.answer)
    for said in (
        "The scenario also has what this form does not show.",
        "Recorded times at which the computer is on",
        "Recorded times at which the server is up, which count instead of a percentage: A",
        "Credit or debt at the start: A",
        "Back-offs at the start: A",
        "Processors for which the project is not asked: A",
        "Another delay after failed tasks than usual: A",
        "A correction factor of run times: A",
        "Tasks that use hardly any processor time: A, idle; later",
        "has 1 more version, which is kept.",
        "The scenario begins with 1 task, which is kept.",
    ):
        assert said in text
    assert "Recorded times at which it is connected" not in text
    assert page.press("save", projects__1__share="30").status_code == 302
    b = replace(scenario.projects[1], share=30.0)
    assert page.scenario() == replace(scenario, projects=(a, b))
    assert (page.scenario().notes, page.scenario().unused) == (scenario.notes, scenario.unused)


def test_hours_that_nobody_touches_keep_all_their_digits(page: EditorPage) -> None:
    hours = Hours(25 / 3, 17, (DayHours(0, 1 / 3, 24.0), DayHours(6, 10.0, 12.0)))
    scenario = page.scenario()
    scenario = replace(scenario, host=replace(scenario.host, in_use=Use(1 / 3, hours=hours)))
    page.experiment.scenario = to_json(scenario)
    page.experiment.save()
    again = EditorPage(page.client, page.experiment)
    assert "Sun 0.333333333333 24" in again.fields["host-in_use_days"]
    assert again.press("save", host__ram_gib="4").status_code == 302
    assert again.scenario().host.in_use == Use(1 / 3, hours=hours)


def test_a_scenario_that_the_form_shows_as_a_whole_has_no_such_notice(page: EditorPage) -> None:
    assert "does not show" not in text_of(page.answer).partition("Download what was last saved")[0]


def paths_of(*entries: Any) -> set[str]:
    """Return the first part of the path of each field, or of each thing that is named instead."""
    return {(getattr(each, "path", None) or each)[0] for each in entries}


@pytest.mark.parametrize(
    ("part", "known"),
    [
        (Host, {"processors", *paths_of(*HostRow.entries, *hour_fields.USES, *hidden.HOST)}),
        (Preferences, paths_of(*PREFERENCES, *hour_fields.PREFERENCES)),
        (ChangePreferences, paths_of(*EVENTS["ChangePreferences"][1], *hour_fields.PREFERENCES)),
        (Project, {"apps", "downtimes", "excluded_gpus", *paths_of(*PROJECT, *hidden.PROJECT)}),
        (App, {"versions", "size", "estimate", *paths_of(*AppRow.entries, *hidden.APP)}),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_every_field_of_a_scenario_has_one_in_the_form_or_is_named(part: type, known: set[str]) -> None:
    assert {field.name for field in fields(part)} == known
