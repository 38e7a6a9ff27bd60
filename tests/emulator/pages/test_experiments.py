"""The emulator's pages: start, run in a process of its own, look, compare, share, delete."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse
from pytest_django.fixtures import Settings

from emulator.engine.scenario import CPU, Preferences, Processor, Scenario, ScenarioError
from emulator.files.presets import FOLDER, preset
from emulator.files.scenario_json import from_json, to_json
from emulator.models import Experiment, Run, RunState, RunTimeline
from emulator.pages import downloads
from emulator.pages.drafts import Change, ProjectFacts, changed, draft
from emulator.pages.reads import colours, read_timeline
from emulator.runs import experiments, worker
from emulator.runs.packed_timeline import Packed
from portal.models import Host, User
from tests.support.accounting_factories import make_project
from tests.support.page_text import text_of


@pytest.fixture
def signed_in(client: Client, alice: User) -> Client:
    client.force_login(alice)
    return client


@pytest.fixture(autouse=True)
def queue(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """What workers would be told; tests carry it out themselves, so that they see each state."""
    told: list[tuple[str, int]] = []
    monkeypatch.setattr("emulator.tasks.carry_out.delay", lambda pk: told.append(("run", pk)))
    monkeypatch.setattr("emulator.tasks.read_upload.delay", lambda pk: told.append(("read", pk)))
    read_timeline.cache_clear()
    return told


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


def carry_out(queue: list[tuple[str, int]]) -> None:
    for what, pk in queue:
        (worker.execute_run if what == "run" else worker.read_upload)(pk)


def test_a_run_from_an_example_to_its_timeline(signed_in: Client, queue: list[tuple[str, int]]) -> None:
    experiment = begin(signed_in)
    page = reverse("experiment", args=[experiment.pk])
    assert "What to try" in text_of(signed_in.get(page))
    assert signed_in.post(page, trial(experiment)).status_code == 302
    assert "waits for a worker" in text_of(signed_in.get(page))
    carry_out(queue)
    text = text_of(signed_in.get(page))
    assert "Shares as aimed and as got" in text
    assert re.search(r"A 50 % (49|50|51) %", text)
    drawn = signed_in.get(reverse("emulator_window", args=[experiment.pk, 1]), {"from": 0, "to": 86_400, "width": 800})
    assert {row[0] for row in drawn.json()["blocks"]} == {0, 1, 2, 3}
    run = Run.objects.get()
    assert (run.state, run.progress) == (RunState.DONE, 1)
    assert run.cpu_secs and run.cpu_secs > 0


def test_progress_is_asked_for_and_then_the_page_is_loaded_anew(
    signed_in: Client, queue: list[tuple[str, int]]
) -> None:
    experiment = begin(signed_in)
    page = reverse("experiment", args=[experiment.pk])
    signed_in.post(page, trial(experiment))
    asked = signed_in.get(page, headers={"HX-Target": "progress"})
    assert b"0" in asked.content and b"<html" not in asked.content
    carry_out(queue)
    anew = signed_in.get(page, headers={"HX-Target": "progress"})
    assert anew["HX-Refresh"] == "true"
    # A cache must not hand out the page as its part, nor the other way round.
    assert all("HX-Target" in response["Vary"] for response in (asked, anew, signed_in.get(page)))


def test_policies_are_compared_over_seeds(signed_in: Client, queue: list[tuple[str, int]]) -> None:
    experiment = begin(signed_in)
    page = reverse("experiment", args=[experiment.pk])
    signed_in.post(page, trial(experiment, policies=["rec", "ltd", "debt"], nseeds="2"))
    assert len(queue) == 6
    carry_out(queue)
    answer = signed_in.get(page)
    text = text_of(answer)
    assert "Figures of merit" in text
    assert all(name in text for name in ("Recent estimated credit", "Long-term debt per", "Debt with preemption"))
    # Only the first seed of each keeps what its timeline needs.
    assert RunTimeline.objects.count() == 3
    assert answer.context["chart"]["series"]["idle"][0][0] == pytest.approx(0, abs=1e-6)


def test_the_debt_policy_is_tried_without_its_rule(signed_in: Client, queue: list[tuple[str, int]]) -> None:
    experiment = begin(signed_in, "s2_gpu_example1")
    page = reverse("experiment", args=[experiment.pk])
    signed_in.post(page, trial(experiment, policies=["ltd"], no_rule="on", days="20"))
    carry_out(queue)
    with_rule, without = Run.objects.order_by("number")
    # The documents' first example: the rule keeps GPU work at half, without it A gets three quarters of the GPU.
    assert with_rule.projects[0]["got_fraction"] < 0.4
    assert without.projects[0]["got_fraction"] == pytest.approx(0.5, abs=0.05)


def test_a_parameter_is_swept(signed_in: Client, queue: list[tuple[str, int]]) -> None:
    experiment = begin(signed_in)
    page = reverse("experiment", args=[experiment.pk])
    signed_in.post(page, trial(experiment, parameter="work_buf_additional_days", values="0.1, 2 0.5"))
    carry_out(queue)
    chart = signed_in.get(page).context["chart"]
    assert chart["values"] == [0.1, 0.5, 2]
    assert chart["axis"] == "additional buffer (days)"
    # A larger buffer needs fewer RPCs for a job.
    rpcs = [row[0] for row in chart["series"]["rpcs_per_job"]]
    assert rpcs[0] > rpcs[1] > rpcs[2]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"days": "0"}, "0.01"),
        ({"days": "nan"}, "Enter a number"),
        ({"days": "1e304"}, "36525"),
        ({"policies": []}, "This field is required"),
        ({"nseeds": "11"}, "10"),
        ({"parameter": "half_life_days", "values": ""}, "Say over which values."),
        ({"parameter": "half_life_days", "values": "1 x"}, "Numbers only"),
        ({"parameter": "half_life_days", "values": "-1"}, "From 0.01 to 10000 days."),
        ({"parameter": "half_life_days", "values": "1 2 3 4 5 6 7 8 9"}, "8 are the most"),
        ({"share0": "0", "share1": "0"}, "at least one project needs a share above 0"),
        ({"policies": ["rec", "ltd", "ltd-single", "debt"], "nseeds": "10", "quirks": "on"}, "1 to 40"),
    ],
)
def test_what_cannot_be_run_is_said_with_its_limit(
    signed_in: Client, queue: list[tuple[str, int]], changes: dict[str, Any], said: str
) -> None:
    experiment = begin(signed_in)
    answer = signed_in.post(reverse("experiment", args=[experiment.pk]), trial(experiment, **changes))
    assert said in text_of(answer)
    assert queue == []


def test_an_experiment_is_started_once(signed_in: Client, queue: list[tuple[str, int]]) -> None:
    experiment = begin(signed_in)
    page = reverse("experiment", args=[experiment.pk])
    for _ in range(2):
        signed_in.post(page, trial(experiment))
    assert len(queue) == Run.objects.count() == 1


def test_a_message_that_comes_twice_runs_once(signed_in: Client, queue: list[tuple[str, int]]) -> None:
    experiment = begin(signed_in)
    signed_in.post(reverse("experiment", args=[experiment.pk]), trial(experiment))
    carry_out(queue)
    finished_at = Run.objects.get().finished_at
    carry_out(queue)
    assert Run.objects.get().finished_at == finished_at


def test_a_run_that_takes_too_long_is_ended(
    signed_in: Client, queue: list[tuple[str, int]], settings: Settings
) -> None:
    settings.EMULATOR_RUN_SECS_MAX = 1
    experiment = begin(signed_in, "n50_projects")
    signed_in.post(reverse("experiment", args=[experiment.pk]), trial(experiment, days="36000"))
    carry_out(queue)
    run = Run.objects.get()
    assert run.state == RunState.FAILED
    assert "more than 1 s of processor time" in run.fault


def test_a_cancelled_run_stops(
    signed_in: Client, queue: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "POLL_SECS", 0.05)
    experiment = begin(signed_in, "n50_projects")
    signed_in.post(reverse("experiment", args=[experiment.pk]), trial(experiment, days="36000"))
    # As if the owner cancelled while it runs: it looks after a moment.
    report = worker._report_progress

    def cancel_and_report(run_id: int, progress: float) -> None:
        signed_in.post(reverse("experiment_cancel", args=[experiment.pk]))
        report(run_id, progress)

    monkeypatch.setattr(worker, "_report_progress", cancel_and_report)
    carry_out(queue)
    assert Run.objects.get().state == RunState.CANCELLED


def test_a_queued_run_is_cancelled_at_once(signed_in: Client, queue: list[tuple[str, int]]) -> None:
    experiment = begin(signed_in)
    signed_in.post(reverse("experiment", args=[experiment.pk]), trial(experiment))
    signed_in.post(reverse("experiment_cancel", args=[experiment.pk]))
    carry_out(queue)
    assert Run.objects.get().state == RunState.CANCELLED


def test_uploaded_files_become_a_scenario(signed_in: Client, queue: list[tuple[str, int]]) -> None:
    folder, named = FOLDER / "s1_two_equal_cpu", b"<host_info><domain_name>attic</domain_name>"
    files = {
        name: SimpleUploadedFile(f"{name}.xml", (folder / f"{name}.xml").read_bytes().replace(b"<host_info>", named))
        for name in ("client_state", "global_prefs")
    }
    answer = signed_in.post(reverse("emulate_files"), files)
    experiment = Experiment.objects.get()
    assert answer["Location"] == reverse("experiment", args=[experiment.pk])
    assert "being read" in text_of(signed_in.get(answer["Location"]))
    carry_out(queue)
    experiment.refresh_from_db()
    assert from_json(experiment.scenario).projects == preset("s1_two_equal_cpu").scenario.projects
    # It is called as the computer that the file is from.
    assert experiment.title == "attic"
    assert not hasattr(experiment, "upload")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"<client_state><host_info></client_state>", "line"),
        (b"nothing of the kind", "line"),
        (b'<!DOCTYPE a [<!ENTITY b "c">]><client_state>&b;</client_state>', "line"),
    ],
)
def test_a_file_that_cannot_be_read_is_told_with_its_line(
    signed_in: Client, queue: list[tuple[str, int]], content: bytes, said: str
) -> None:
    signed_in.post(reverse("emulate_files"), {"client_state": SimpleUploadedFile("client_state.xml", content)})
    carry_out(queue)
    text = text_of(signed_in.get(reverse("experiment", args=[Experiment.objects.get().pk])))
    assert "cannot be made a scenario" in text
    assert said in text


def test_a_file_that_is_too_large_is_refused(signed_in: Client, queue: list[tuple[str, int]]) -> None:
    large = SimpleUploadedFile("client_state.xml", b"x" * (16 * 1024 * 1024 + 1))
    answer = signed_in.post(reverse("emulate_files"), {"client_state": large})
    assert "16,777,216 are the most" in text_of(answer)
    assert not Experiment.objects.exists()


def test_a_description_becomes_a_scenario(signed_in: Client) -> None:
    rows = {"name1": "A", "share1": 75, "cpu_hours1": 1, "deadline_days1": 7, "gpu_hours1": 0.5}
    rows |= {"name2": "B", "share2": 25, "cpu_hours2": 2, "deadline_days2": 3}
    rows |= {f"share{n}": 100 for n in (3, 4, 5)} | {f"deadline_days{n}": 7 for n in (3, 4, 5)}
    machine = {"title": "Box", "ncpus": 2, "cpu_gflops": 4, "ngpus": 1, "gpu_kind": "NVIDIA", "gpu_gflops": 5000}
    buffer = {"work_buf_min_days": 0.1, "work_buf_additional_days": 0.5}
    signed_in.post(reverse("emulate_form"), {**rows, **machine, **buffer})
    scenario = from_json(Experiment.objects.get().scenario)
    assert [(project.name, project.share, len(project.apps)) for project in scenario.projects] == [
        ("A", 75, 2),
        ("B", 25, 1),
    ]
    # An hour at 4 GFLOPS
    assert scenario.projects[0].apps[0].size.mean == pytest.approx(3600 * 4e9)


def test_a_computer_without_hardware_says_so(signed_in: Client, studio: Host) -> None:
    Host.objects.filter(pk=studio.pk).update(ncpus=0)
    answer = signed_in.post(reverse("emulate_computer", args=[studio.pk]), follow=True)
    assert "cannot be emulated yet" in text_of(answer)


def test_who_has_the_link_sees_it_and_nobody_else(
    client: Client, alice: User, bob: User, queue: list[tuple[str, int]]
) -> None:
    client.force_login(alice)
    experiment = begin(client)
    client.post(reverse("experiment", args=[experiment.pk]), trial(experiment))
    carry_out(queue)
    by_number = [
        reverse("emulator_run", args=[experiment.pk, 1]),
        reverse("emulator_window", args=[experiment.pk, 1]),
        reverse("emulator_json", args=[experiment.pk, 1]),
        reverse("emulator_csv", args=[experiment.pk, 1, "blocks"]),
    ]
    client.post(reverse("experiment_share", args=[experiment.pk]))
    token = Experiment.objects.get().share_token
    for visitor in (None, bob):
        client.logout()
        if visitor:
            client.force_login(visitor)
        assert {client.get(page).status_code for page in by_number} == {404}
        shared = client.get(reverse("experiment_shared", args=[token]))
        assert shared.status_code == 200
        assert "Delete" not in text_of(shared)
        assert client.get(reverse("emulator_window", args=[token, 1])).status_code == 200
    client.force_login(alice)
    client.post(reverse("experiment_share", args=[experiment.pk]), {"end": "1"})
    assert client.get(reverse("experiment_shared", args=[token])).status_code == 404


def test_who_was_given_the_link_sees_how_far_it_is(
    client: Client, signed_in: Client, queue: list[tuple[str, int]]
) -> None:
    experiment = begin(signed_in)
    signed_in.post(reverse("experiment", args=[experiment.pk]), trial(experiment, nseeds="2"))
    signed_in.post(reverse("experiment_share", args=[experiment.pk]))
    client.logout()
    experiment.refresh_from_db()
    link = reverse("experiment_shared", args=[experiment.share_token])
    # The page asks for its progress under the address that the visitor may see.
    assert f'hx-get="{link}"' in client.get(link).content.decode()
    progress = client.get(link, headers={"HX-Request": "true", "HX-Target": "progress"})
    assert "0 of 2 seeds" in text_of(progress)


def test_cancelled_runs_are_told_of_once(signed_in: Client, queue: list[tuple[str, int]]) -> None:
    experiment = begin(signed_in)
    page = reverse("experiment", args=[experiment.pk])
    signed_in.post(page, trial(experiment, nseeds="3"))
    begin(signed_in)
    listed = text_of(signed_in.get(reverse("emulator")))
    # The latest is the first.
    assert "Recent estimated credit · 3 seeds" in listed.partition("not started")[2]
    signed_in.post(reverse("experiment_cancel", args=[experiment.pk]))
    text = text_of(signed_in.get(page))
    assert text.count("cancelled") == 1 and "All 3 runs: cancelled." in text
    assert "In numbers" not in text


def test_the_tables_of_a_run_are_pages_too(signed_in: Client, queue: list[tuple[str, int]]) -> None:
    experiment = begin(signed_in)
    signed_in.post(reverse("experiment", args=[experiment.pk]), trial(experiment, days="20"))
    carry_out(queue)
    address = f"{reverse('emulator_table', args=[experiment.pk, 1, 'blocks'])}?row=100"
    page = signed_in.get(address).content.decode()
    assert page.count("<h1") == 1 and page.count("<tr") > 2
    rows = signed_in.get(address, headers={"HX-Request": "true", "HX-Target": "more-blocks"}).content.decode()
    assert rows.lstrip().startswith("<tr") and "<h1" not in rows


def test_a_computers_page_leads_to_its_emulation(signed_in: Client, studio: Host) -> None:
    page = signed_in.get(reverse("host", args=[studio.pk])).content.decode()
    assert f'action="{reverse("emulate_computer", args=[studio.pk])}"' in page


def test_downloads_have_what_the_page_shows(signed_in: Client, queue: list[tuple[str, int]]) -> None:
    experiment = begin(signed_in)
    signed_in.post(reverse("experiment", args=[experiment.pk]), trial(experiment))
    carry_out(queue)
    run = Run.objects.get()
    saved = json.loads(signed_in.get(reverse("emulator_json", args=[experiment.pk, 1])).content)
    assert saved["figures_of_merit"] == run.figures
    assert from_json(saved["scenario"]) == from_json(Experiment.objects.get().scenario)
    for what, header in (("blocks", "start_secs,"), ("rpcs", "at_secs,"), ("decisions", "at_secs,")):
        answer = signed_in.get(reverse("emulator_csv", args=[experiment.pk, 1, what]))
        lines = b"".join(answer).decode().splitlines()
        assert lines[0].startswith(header)
        assert len(lines) > 5
    for what, said in (("decisions", "is asked"), ("rpcs", "s of work and got"), ("blocks", "CPU 0: job")):
        address = reverse("emulator_table", args=[experiment.pk, 1, what])
        rows = text_of(signed_in.get(address, {"from": 43_200}, headers={"HX-Target": f"more-{what}"}))
        assert said in rows
        assert what == "blocks" or rows.startswith(("day 0, 1", "day 1"))
    assert signed_in.get(reverse("emulator_table", args=[experiment.pk, 1, "odd"])).status_code == 404


def test_buffer_standing_and_availability_are_downloads_and_tables_too(
    signed_in: Client, queue: list[tuple[str, int]]
) -> None:
    experiment = begin(signed_in)
    signed_in.post(reverse("experiment", args=[experiment.pk]), trial(experiment, policies=["ltd"]))
    carry_out(queue)

    def lines_of(what: str) -> list[str]:
        answer = signed_in.get(reverse("emulator_csv", args=[experiment.pk, 1, what]))
        return b"".join(answer).decode().splitlines()

    header, *levels = lines_of("levels")
    assert header == "at_secs,buffer_secs CPU,standing A,standing B"
    # One project's debt is another's credit; a number below zero stays a number.
    rows = [[float(word) for word in line.split(",")] for line in levels]
    assert any(standing < 0 for row in rows for standing in row[2:])
    assert lines_of("states") == ["from_secs,state", "0.0,may compute"]
    assert lines_of("misses") == ["at_secs,project,job,late_secs"]
    text = text_of(signed_in.get(reverse("experiment", args=[experiment.pk])))
    assert "in the buffer: CPU" in text and "Late jobs 0" in text


def test_a_late_job_is_told_with_its_lateness() -> None:
    columns = {
        "misses.at_secs": np.array([90_000.0]),
        "misses.project": np.array([0]),
        "misses.job": np.array([7]),
        "misses.late_secs": np.array([5_400.0]),
    }
    packed = Packed(columns, {"projects": ["=A"]})
    # 5,400 s are an hour and a half.
    assert downloads.miss(packed, 0)["why"] == "job 7 is finished 1.50 h after its deadline"
    # A spreadsheet must not take a name for a formula.
    assert list(downloads.misses_csv(packed))[1].strip() == "90000.0,'=A,7,5400.0"


def test_a_copy_can_be_changed_and_the_first_deleted(signed_in: Client, queue: list[tuple[str, int]]) -> None:
    experiment = begin(signed_in)
    signed_in.post(reverse("experiment", args=[experiment.pk]), trial(experiment, share0="300"))
    answer = signed_in.post(reverse("experiment_change", args=[experiment.pk]))
    copy = Experiment.objects.latest("pk")
    assert answer["Location"] == reverse("experiment", args=[copy.pk])
    assert from_json(copy.scenario).projects[0].share == 300
    signed_in.post(reverse("experiment_delete", args=[experiment.pk]))
    # Its worker comes too late, and that does no harm.
    carry_out(queue)
    assert list(Experiment.objects.values_list("pk", flat=True)) == [copy.pk]


def test_there_is_a_limit_to_what_one_keeps(signed_in: Client, settings: Settings) -> None:
    settings.EMULATOR_EXPERIMENTS_MAX = 1
    begin(signed_in)
    answer = signed_in.post(reverse("emulate_preset", args=["s1_two_equal_cpu"]), follow=True)
    assert "as many as one may keep" in text_of(answer)
    assert Experiment.objects.count() == 1


def test_lost_runs_are_queued_again(signed_in: Client, queue: list[tuple[str, int]]) -> None:
    from datetime import timedelta

    from django.utils import timezone

    experiment = begin(signed_in)
    signed_in.post(reverse("experiment", args=[experiment.pk]), trial(experiment))
    long_ago = timezone.now() - timedelta(hours=1)
    Experiment.objects.update(started_at=long_ago)
    Run.objects.update(state=RunState.RUNNING, heard_of_at=long_ago)
    assert worker.requeue_lost(timezone.now()) == [Run.objects.get().pk]
    assert Run.objects.get().state == RunState.QUEUED


def example() -> Scenario:
    facts = [ProjectFacts("A", 75, {CPU: 1.0}), ProjectFacts("B", 25, {CPU: 2.0})]
    return draft([Processor(CPU, 2, 4e9)], facts, Preferences())


def test_a_faster_computer_runs_its_jobs_faster() -> None:
    faster = changed(example(), Change([2], [8e9], [1, 1], 0.2, 1.0))
    assert faster.projects[0].apps[0].versions[0].flops == 8e9
    assert [project.share for project in faster.projects] == [1, 1]
    assert faster.preferences.work_buf_min_days == 0.2


@pytest.mark.parametrize("speed", [0, -1, float("nan"), float("inf"), 1e304])
def test_an_impossible_speed_is_refused(speed: float) -> None:
    with pytest.raises(ScenarioError, match="CPU"):
        changed(example(), Change([2], [speed], [1, 1], 0.2, 1.0))


def test_parameters_that_do_not_exist_are_refused() -> None:
    with pytest.raises(ScenarioError, match="turbo"):
        experiments.with_parameters(example(), {"turbo": 1})


def test_a_scenario_survives_its_json() -> None:
    for key in ("s1_two_equal_cpu", "s2_gpu_example1"):
        scenario = preset(key).scenario
        assert from_json(json.loads(json.dumps(to_json(scenario)))) == scenario


@pytest.mark.parametrize("data", [None, [], {}, {"host": 1}, {"projects": "x"}])
def test_json_that_is_no_scenario_is_refused(data: Any) -> None:
    with pytest.raises(ScenarioError):
        from_json(data)


@pytest.mark.django_db
def test_a_project_of_the_site_has_its_colour_in_a_timeline_too() -> None:
    make_project("Alpha", colour=1)
    make_project("Beta", colour=9)
    # Beta's ninth colour is the second, which Alpha has: it takes the first free one, as do those nobody knows.
    assert colours(["Alpha", "Beta", "x", "y"]) == [1, 0, 2, 3]
    assert colours(["x", "Beta"]) == [0, 1]
    assert sorted(colours([str(number) for number in range(10)])) == [0, 0, 1, 1, 2, 3, 4, 5, 6, 7]
