"""The scenario editor: rows are added and removed, no input is lost, and unedited values stay as they were."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from emulator.engine.scenario import (
    CPU,
    DAY_SECS,
    ChangePreferences,
    ChangeProcessor,
    Downtime,
    ExcludedGpu,
    NewApp,
)
from emulator.engine.scenario.limits import DayHours, Hours
from emulator.files.presets import PRESETS, preset
from emulator.models import Experiment
from extras.scenario_editor.tests.editor_page import EditorPage as Page
from extras.scenario_editor.tree import FIELDS_MAX, EditorRefusedError, act, begin, count_fields, rows_of, scenario_from
from tests.support.emulator_experiments import begin as begin_experiment
from tests.support.emulator_experiments import trial
from tests.support.page_text import text_of


@pytest.mark.parametrize("each", PRESETS, ids=lambda each: each.key)
def test_looking_at_a_scenario_changes_nothing_of_it(each: Any) -> None:
    scenario = each.scenario
    state = begin(scenario, "x", each.days)
    made = scenario_from(rows_of(state))
    assert made == scenario


def test_saving_without_a_change_keeps_every_digit(page: Page) -> None:
    before = page.scenario()
    assert page.press("save").status_code == 302
    assert page.scenario() == before
    assert page.experiment.draft == {}


def test_a_whole_scenario_is_made(page: Page) -> None:
    page.press("add-project")
    page.press("add-app-2")
    page.press("add-processor")
    for kind in ("NewApp", "ChangePreferences", "ChangeProcessor", "ServerUp"):
        page.press("add-event", new_event=kind)
    saved = page.press(
        "save",
        days="12",
        processors__1__kind="NVIDIA",
        projects__2__name="New",
        projects__2__downtimes="2 12 7\n30 1",
        projects__2__reply_delay_secs="90",
        projects__2__priority="-2",
        projects__2__excluded_gpus="NVIDIA 0\nNVIDIA 1 an app",
        projects__2__apps__0__hours="2.5",
        projects__2__apps__0__spread_percent="10",
        projects__2__apps__0__error_percent="5",
        projects__2__apps__1__kind="NVIDIA",
        projects__2__apps__1__gpus="1",
        projects__2__apps__1__cpus="0.1",
        events__1__max_cpus_percent="50",
        events__2__instances="8",
        events__3__day="0.5",
    )
    assert saved.status_code == 302, saved.context["errors"]
    scenario = page.scenario()
    assert page.experiment.days == 12
    new = scenario.project("New")
    assert new.downtimes == (Downtime(2 * DAY_SECS, 43_200.0, 7 * DAY_SECS), Downtime(30 * DAY_SECS, 3600.0))
    assert (new.reply_delay_secs, new.priority) == (90, -2)
    assert new.excluded_gpus == (ExcludedGpu("NVIDIA", 0), ExcludedGpu("NVIDIA", 1, "an app"))
    first, second = new.apps
    # 2.5 hours at 4 GFLOPS, a tenth of it as deviation.
    assert (first.size.mean, first.size.std_dev) == (2.5 * 3600 * 4e9, 0.25 * 3600 * 4e9)
    # The server's estimate is as long, without the spread.
    assert (first.estimate.mean, first.estimate.std_dev) == (first.size.mean, 0)
    assert first.error_rate == pytest.approx(0.05)
    assert second.versions[0].gpu == "NVIDIA" and second.versions[0].gpus == 1
    # In order of time; the first was added last.
    assert [type(event).__name__ for event in scenario.events] == [
        *("ServerUp", "NewApp", "ChangePreferences", "ChangeProcessor")
    ]
    assert scenario.events[2] == ChangePreferences(scenario.events[2].at_secs, max_cpus_percent=50.0)
    assert scenario.events[3] == ChangeProcessor(scenario.events[3].at_secs, CPU, instances=8)
    assert isinstance(scenario.events[1], NewApp)


def test_hours_are_typed_for_all_days_and_for_single_ones(page: Page) -> None:
    page.press("add-event", new_event="ChangePreferences")
    saved = page.press(
        "save",
        preferences__compute_hours_from="8.5",
        preferences__compute_hours_until="18",
        preferences__compute_hours_days="Sat 10 14,5\n\n sunday 24 0",
        preferences__network_hours_days="Mo. 0 6",
        start__week_hours="33",
        events__0__compute_hours_from="22",
        events__0__compute_hours_until="6",
    )
    assert saved.status_code == 302, saved.context["errors"]
    scenario = page.scenario()
    # Days count from Sunday; a German day is understood, too, as the draft may have been typed on a German page.
    assert scenario.preferences.compute_hours == Hours(8.5, 18.0, (DayHours(6, 10.0, 14.5), DayHours(0, 24.0, 0.0)))
    assert scenario.preferences.network_hours == Hours(0.0, 0.0, (DayHours(1, 0.0, 6.0),))
    assert scenario.week_secs == 33 * 3600
    assert scenario.events == (ChangePreferences(DAY_SECS, compute_hours=Hours(22.0, 6.0)),)

    again = Page(page.client, page.experiment)
    assert again.fields["preferences-compute_hours_days"] == "Sat 10 14.5\nSun 24 0"
    assert "preferences-network_hours_from" not in again.fields  # the whole day
    assert again.press("save").status_code == 302
    assert again.scenario() == scenario
    # Emptied, they are the whole day again, and the event changes nothing any more.
    emptied = dict.fromkeys((name for name in again.fields if "_hours_" in name), "")
    again.press("draft", **emptied)
    again.press("remove-event-0")
    again.press("save")
    assert again.scenario().preferences.compute_hours == Hours()


@pytest.mark.parametrize(
    ("field", "changes", "said"),
    [
        ("compute_hours_until", {"compute_hours_until": "24.5"}, "At most 24.0."),
        ("compute_hours_from", {"compute_hours_from": "-1"}, "At least 0.0."),
        ("network_hours_until", {"network_hours_from": "8"}, "Enter both hours, or neither."),
        ("compute_hours_days", {"compute_hours_days": "Sat 10"}, "Line 1: enter a day and two hours from 0 to 24"),
        ("compute_hours_days", {"compute_hours_days": "Sat 10 nan"}, "Line 1: enter a day and two hours"),
        ("compute_hours_days", {"compute_hours_days": "Sat 10 25"}, "Line 1: enter a day and two hours"),
        ("network_hours_days", {"network_hours_days": "Fri 1 2\nMoonday 1 2"}, "Line 2: enter a day and two hours"),
        ("compute_hours_days", {"compute_hours_days": "Sat 1 2\nSat 3 4"}, "Line 2: this day has a line already."),
        ("compute_hours_days", {"compute_hours_days": "x" * 501}, "at most 500 characters"),
        ("compute_hours_from", {"compute_hours_days": "Sat 1 2"}, "Enter the hours of all other days, too."),
    ],
)
def test_wrong_hours_are_told_at_their_field(page: Page, field: str, changes: dict[str, str], said: str) -> None:
    page.press("add-event", new_event="ChangePreferences")
    refused = page.press("save", **{f"events__0__{name}": text for name, text in changes.items()})
    assert refused.status_code == 400
    errors = {name: text for name, _label, text in refused.context["errors"]}
    assert set(errors) == {f"id_events-0-{field}"}
    assert said in errors[f"id_events-0-{field}"]


def test_the_draft_of_an_older_release_is_read(page: Page) -> None:
    # It lacks the values of fields added since.
    page.press("draft", preferences__period_mins="30")
    draft = page.experiment
    draft.refresh_from_db()
    del draft.draft["editor"]["start"]
    typed = draft.draft["editor"]["preferences"]["typed"]
    for name in [name for name in typed if "_hours_" in name]:
        del typed[name]
    draft.save()
    again = Page(page.client, draft)
    assert again.press("save").status_code == 302
    assert again.scenario().preferences.period_secs == 1800.0


def test_what_was_typed_stays_whatever_it_is(page: Page) -> None:
    page.press("draft", projects__0__share="lots", days="")
    again = Page(page.client, page.experiment)
    assert again.answer.context["rows"].projects[0].row.typed["share"] == "lots"
    text = text_of(again.answer)
    assert "Enter a number" in text and "This field is required" in text
    refused = again.press("save")
    assert refused.status_code == 400
    # The error stands beside its field, and in the list on top with a link to it.
    assert b'href="#id_projects-0-share"' in refused.content
    assert b'id="id_projects-0-share_error"' in refused.content
    assert b">A: Share</a>: Enter a number." in refused.content
    assert page.scenario() == preset("s1_two_equal_cpu").scenario


def test_rows_move_with_what_was_typed_into_them(page: Page) -> None:
    page.press("add-project")
    page.press("add-event", new_event="Attach")
    page.press("draft", projects__2__share="33", events__0__project="B", projects__1__name="Beta")
    # The event follows the project's new name, whatever row that is in.
    assert page.answer.context["rows"].events[0].row.typed["project"] == "Beta"
    page.press("remove-project-0")
    rows = page.answer.context["rows"]
    assert [(row.row.typed["name"], row.row.typed["share"]) for row in rows.projects] == [("Beta", "100"), ("C", "33")]
    assert page.press("save").status_code == 302
    assert [project.name for project in page.scenario().projects] == ["Beta", "C"]


def test_a_form_of_another_window_changes_nothing(page: Page) -> None:
    other = Page(page.client, page.experiment)
    page.press("remove-project-0")
    refused = other.press("draft", projects__0__name="Lost")
    assert refused.status_code == 409
    assert "changed in another window" in text_of(refused)
    assert [row.row.typed["name"] for row in refused.context["rows"].projects] == ["B"]


def test_a_draft_is_discarded(page: Page) -> None:
    page.press("draft", title="Other")
    assert page.press("discard").status_code == 302
    page.experiment.refresh_from_db()
    assert page.experiment.draft == {}


def test_parts_of_the_page_are_fetched_alone(page: Page) -> None:
    posted = {**page.fields, "do": "draft", "projects-0-share": "x"}
    saved = page.client.post(page.url, posted, headers={"HX-Request": "true", "HX-Target": "saved"})
    assert b"<html" not in saved.content and b"Enter a number" in saved.content and b'id="axis"' in saved.content
    posted = {**page.fields, "do": "add-project"}
    form = page.client.post(page.url, posted, headers={"HX-Request": "true", "HX-Target": "editor"})
    assert b"<html" not in form.content and form.content.count(b"Remove the project") == 3


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"projects__0__name": ""}, "This field is required"),
        ({"projects__0__name": "B"}, "two projects have the same name"),
        ({"projects__0__share": "1e304"}, "At most 1000000000.0"),
        ({"projects__0__share": "nan"}, "Enter a number"),
        ({"projects__0__downtimes": "1"}, "Line 1: enter two or three numbers."),
        (
            {"projects__0__excluded_gpus": "NVIDIA 61\nNVIDIA 62"},
            "Line 2: enter a type of GPU and the number of a device from 0 to 61.",
        ),
        ({"projects__0__excluded_gpus": "NVIDIA"}, "Line 1: enter a type of GPU"),
        ({"projects__0__priority": "101"}, "At most 100."),
        ({"projects__0__downtimes": "1 48 2"}, "a repetition must be longer"),
        ({"projects__0__downtimes": "nan 1"}, "Line 1: enter numbers from 0"),
        ({"projects__0__apps__0__cpus": "0"}, "needs some of it"),
        ({"projects__0__apps__0__hours": "0"}, "At least"),
        ({"projects__0__apps__0__kind": "TPU"}, "not one of the available choices"),
        ({"processors__0__kind": "NVIDIA"}, "the first must be CPU"),
        ({"days": "40000"}, "At most 36525"),
        ({"host__on_percent": "101"}, "At most 100"),
        ({"title": "x" * 101}, "at most 100 characters"),
    ],
)
def test_what_is_wrong_is_said(page: Page, changes: dict[str, str], said: str) -> None:
    refused = page.press("save", **changes)
    assert refused.status_code == 400
    assert said in text_of(refused)


@pytest.mark.parametrize(
    "do", ["remove-project-7", "remove-project--1", "add-app-9", "add-event", "remove-processor-0", "x"]
)
def test_a_row_that_is_not_there_is_refused(page: Page, do: str) -> None:
    refused = page.press(do)
    assert refused.status_code == 400
    assert "This row is not there any more." in text_of(refused)


def test_an_event_must_change_something(page: Page) -> None:
    page.press("add-event", new_event="ChangePreferences")
    assert "it changes nothing: give at least one preference" in text_of(page.press("save"))


def test_large_scenarios_are_edited_as_json(signed_in: Client) -> None:
    state = begin(preset("n50_projects").scenario, "x", 1)
    assert count_fields(state) > FIELDS_MAX
    experiment = begin_experiment(signed_in, "n50_projects")
    answer = signed_in.get(reverse("experiment_edit", args=[experiment.pk]))
    assert "too large for the form" in text_of(answer)


@pytest.mark.parametrize(
    ("row", "kind"), [("project", ""), ("event", "NewApp"), ("event", "ChangePreferences"), ("event", "Detach")]
)
def test_the_form_never_has_more_fields_than_are_read(row: str, kind: str) -> None:
    state = begin(preset("s1_two_equal_cpu").scenario, "x", 1)
    nfields = 0
    with pytest.raises(EditorRefusedError, match="Larger scenarios can be changed as JSON"):
        while True:
            nfields = sum(len(form.fields) for form in rows_of(state).forms())
            for _ in range(5):
                act(state, f"add-{row}", kind)
    # Beside them the form has its own: revision, token, button and kind of event.
    assert 600 < nfields < 1000 - 4


def test_a_row_too_many_is_refused_and_nothing_is_lost(signed_in: Client) -> None:
    experiment = begin_experiment(signed_in)
    state = begin(preset("s1_two_equal_cpu").scenario, "x", 1)
    while count_fields(state) + 30 < FIELDS_MAX:
        act(state, "add-project")
    experiment.draft = {"editor": state}
    experiment.save()
    page = Page(signed_in, experiment)
    refused = page.press("add-project", title="Kept")
    assert refused.status_code == 400
    assert "Larger scenarios can be changed as JSON." in text_of(refused)
    assert page.fields["title"] == "Kept"
    assert len(refused.context["rows"].projects) == len(state["projects"])


def test_a_started_experiment_is_not_edited(signed_in: Client) -> None:
    experiment = begin_experiment(signed_in)
    page = Page(signed_in, experiment)
    signed_in.post(reverse("experiment", args=[experiment.pk]), trial(experiment))
    assert page.press("save", title="Other").status_code == 302
    experiment.refresh_from_db()
    assert experiment.title != "Other"
    assert signed_in.get(page.url).status_code == 302


def test_a_blank_scenario_opens_in_the_editor(signed_in: Client) -> None:
    answer = signed_in.post(reverse("emulate_blank"))
    page = Page(signed_in, Experiment.objects.get())
    assert answer["Location"] == page.url
    assert page.press("save").status_code == 302
