"""The emulator's pages: start, run in a process of its own, look, compare, share, delete."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django.fixtures import Settings

from emulator.engine.scenario import CPU, Preferences, Processor, Scenario
from emulator.files.presets import FOLDER, preset
from emulator.files.scenario_json import from_json
from emulator.models import Experiment, Run, RunState, RunTimeline, Upload
from emulator.pages.drafts import ProjectFacts, draft
from emulator.pages.texts import preset_texts
from portal.models import Host, RequestedWork, User
from tests.support.emulator_experiments import begin, carry_out, trial
from tests.support.page_text import text_of


def test_a_run_from_an_example_to_its_timeline(signed_in: Client) -> None:
    experiment = begin(signed_in)
    page = reverse("experiment", args=[experiment.pk])
    assert "What to try" in text_of(signed_in.get(page))
    assert signed_in.post(page, trial(experiment)).status_code == 302
    assert "Waiting for a worker" in text_of(signed_in.get(page))
    carry_out()
    text = text_of(signed_in.get(page))
    assert "Target and actual shares" in text
    assert re.search(r"A 50 % (49|50|51) %", text)
    drawn = signed_in.get(reverse("emulator_window", args=[experiment.pk, 1]), {"from": 0, "to": 86_400, "width": 800})
    assert {row[0] for row in drawn.json()["blocks"]} == {0, 1, 2, 3}
    run = Run.objects.get()
    assert (run.state, run.progress) == (RunState.DONE, 1)
    assert run.cpu_secs and run.cpu_secs > 0


def test_a_stranger_sees_what_can_be_tried(client: Client) -> None:
    text = text_of(client.get("/emulator/"))
    examples = list(preset_texts.offered())
    assert len(examples) > 10
    assert [each["key"] for each in examples if each["title"] not in text or each["shows"] not in text] == []
    assert "you need an account" in text


def test_progress_is_asked_for_and_then_the_page_is_loaded_anew(signed_in: Client) -> None:
    experiment = begin(signed_in)
    page = reverse("experiment", args=[experiment.pk])
    signed_in.post(page, trial(experiment))
    asked = signed_in.get(page, headers={"HX-Target": "progress"})
    assert b"0" in asked.content and b"<html" not in asked.content
    carry_out()
    again = signed_in.get(page, headers={"HX-Target": "progress"})
    assert again["HX-Refresh"] == "true"
    # A cache must not hand out the page as its part, nor the other way round.
    assert all("HX-Target" in response["Vary"] for response in (asked, again, signed_in.get(page)))


def chart_of(answer: Any, figure: str) -> dict[str, Any]:
    """The comparison's chart of this figure."""
    return next(chart for chart in answer.context["charts"] if chart["id"] == f"figure-{figure}")


def test_policies_are_compared_over_seeds(signed_in: Client) -> None:
    experiment = begin(signed_in)
    page = reverse("experiment", args=[experiment.pk])
    signed_in.post(page, trial(experiment, policies=["rec", "ltd", "debt"], nseeds="2"))
    assert carry_out() == 6
    answer = signed_in.get(page)
    text = text_of(answer)
    assert "Figures of merit" in text
    assert all(name in text for name in ("Recent estimated credit", "Long-term debt per", "Debt with preemption"))
    # Only the first seed of each keeps what its timeline needs.
    assert RunTimeline.objects.count() == 3
    (idle,) = chart_of(answer, "idle")["series"]
    assert idle["values"][0] == pytest.approx(0, abs=1e-6) and len(idle["values"]) == 3
    assert all(low <= mean <= high for low, mean, high in zip(idle["low"], idle["values"], idle["worst"], strict=True))


def test_the_debt_policy_is_tried_without_its_rule(signed_in: Client) -> None:
    experiment = begin(signed_in, "s2_gpu_example1")
    page = reverse("experiment", args=[experiment.pk])
    signed_in.post(page, trial(experiment, policies=["ltd"], no_rule="on", days="20"))
    carry_out()
    with_rule, without = Run.objects.order_by("number")
    # The documents' first example: the rule keeps GPU work at half, without it A gets three quarters of the GPU.
    assert with_rule.projects[0]["got_fraction"] < 0.4
    assert without.projects[0]["got_fraction"] == pytest.approx(0.5, abs=0.05)


def test_a_parameter_is_swept(signed_in: Client) -> None:
    experiment = begin(signed_in)
    page = reverse("experiment", args=[experiment.pk])
    signed_in.post(page, trial(experiment, parameter="work_buf_additional_days", values="0.1, 2 0.5"))
    carry_out()
    chart = chart_of(signed_in.get(page), "rpcs_per_job")
    assert chart["places"] == [0.1, 0.5, 2]
    assert chart["x"] == "Additional buffer (days)"
    # A larger buffer needs fewer RPCs for a job.
    rpcs = chart["series"][0]["values"]
    assert rpcs[0] > rpcs[1] > rpcs[2]


def test_a_projects_share_is_swept_by_a_range(signed_in: Client) -> None:
    experiment = begin(signed_in)
    page = reverse("experiment", args=[experiment.pk])
    signed_in.post(page, trial(experiment, parameter="share:A", values="100:300:100", days="5"))
    carry_out()
    answer = signed_in.get(page)
    chart = chart_of(answer, "wasted")
    assert (chart["places"], chart["x"]) == ([100, 200, 300], "Share of A")
    got = [row.got[0].mean for row in answer.context["rows"]]
    assert got == pytest.approx([100 / 200, 200 / 300, 300 / 400], abs=0.02)
    assert "Share of A: 200" in text_of(signed_in.get(reverse("emulator_run", args=[experiment.pk, 2])))


def test_differences_have_intervals_if_there_are_several_seeds(signed_in: Client) -> None:
    for nseeds in ("1", "3"):
        experiment = begin(signed_in, "s4_shares_60_30_10")
        page = reverse("experiment", args=[experiment.pk])
        signed_in.post(page, trial(experiment, policies=["rec", "ltd"], nseeds=nseeds, days="5"))
        carry_out()
        answer = signed_in.get(page)
        assert ("95 % confidence interval" in text_of(answer)) is (nseeds == "3")
    first, second = answer.context["rows"]
    assert (first.differences, second.compared_with) == ({}, "Recent estimated credit")
    found = second.differences["monotony"]
    assert found.high < 0 and f"−{abs(found.mean):.4f}" in text_of(answer)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"days": "0"}, "0.01"),
        ({"parameter": "cpus", "values": "1.5"}, "CPUs: 1.5 is not a whole number from 1 to 4 096"),
        ({"parameter": "share:Z", "values": "1"}, "share:Z is not one of the available choices"),
        ({"parameter": "cpus", "values": "0:1e9:1"}, "Enter numbers separated by spaces"),
        ({"days": "nan"}, "Enter a number"),
        ({"days": "1e304"}, "36525"),
        ({"policies": []}, "This field is required"),
        ({"nseeds": "11"}, "10"),
        ({"parameter": "half_life_days", "values": ""}, "Enter the values to try."),
        ({"parameter": "half_life_days", "values": "1 x"}, "Enter numbers separated by spaces"),
        ({"parameter": "half_life_days", "values": "-1"}, "-1 is not a number from 0.01 to 10 000"),
        ({"parameter": "half_life_days", "values": "1 2 3 4 5 6 7 8 9"}, "The limit is 8."),
        ({"share0": "0", "share1": "0"}, "at least one project needs a share above 0"),
        ({"policies": ["rec", "ltd", "ltd-single", "debt"], "nseeds": "10", "quirks": "on"}, "1 to 40"),
    ],
)
def test_what_cannot_be_run_is_said_with_its_limit(signed_in: Client, changes: dict[str, Any], said: str) -> None:
    experiment = begin(signed_in)
    answer = signed_in.post(reverse("experiment", args=[experiment.pk]), trial(experiment, **changes))
    assert said in text_of(answer)
    assert carry_out() == 0


def test_an_experiment_is_started_once(signed_in: Client) -> None:
    experiment = begin(signed_in)
    page = reverse("experiment", args=[experiment.pk])
    for _ in range(2):
        signed_in.post(page, trial(experiment))
    assert carry_out() == Run.objects.count() == 1


def test_uploaded_files_become_a_scenario(signed_in: Client) -> None:
    folder, named = FOLDER / "s1_two_equal_cpu", b"<host_info><domain_name>attic</domain_name>"
    files = {
        name: SimpleUploadedFile(f"{name}.xml", (folder / f"{name}.xml").read_bytes().replace(b"<host_info>", named))
        for name in ("client_state", "global_prefs")
    }
    answer = signed_in.post(reverse("emulate_files"), files)
    experiment = Experiment.objects.get()
    assert answer["Location"] == reverse("experiment", args=[experiment.pk])
    assert "They are number 1 in the queue" in text_of(signed_in.get(answer["Location"]))
    RequestedWork.objects.update(started_at=timezone.now())
    assert "being read" in text_of(signed_in.get(answer["Location"]))
    RequestedWork.objects.update(started_at=None)
    carry_out()
    experiment.refresh_from_db()
    assert from_json(experiment.scenario).projects == preset("s1_two_equal_cpu").scenario.projects
    # The computer's name is not stored: others may see the experiment.
    assert (experiment.title, from_json(experiment.scenario).host.name) == ("My client", "")
    assert not hasattr(experiment, "upload")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"<client_state><host_info></client_state>", "line"),
        (b"nothing of the kind", "line"),
        (b'<!DOCTYPE a [<!ENTITY b "c">]><client_state>&b;</client_state>', "line"),
    ],
)
def test_a_file_that_cannot_be_read_is_told_with_its_line(signed_in: Client, content: bytes, said: str) -> None:
    signed_in.post(reverse("emulate_files"), {"client_state": SimpleUploadedFile("client_state.xml", content)})
    carry_out()
    text = text_of(signed_in.get(reverse("experiment", args=[Experiment.objects.get().pk])))
    assert "No scenario can be created from these files" in text
    assert said in text


def test_a_zip_of_a_data_folder_becomes_a_scenario(signed_in: Client) -> None:
    signed_in.post(reverse("emulate_files"), {"archive": SimpleUploadedFile("BOINC.zip", zip_of_client())})
    carry_out()
    experiment = Experiment.objects.get()
    assert experiment.title == "My client"
    assert not Upload.objects.exists()
    text = text_of(signed_in.get(reverse("experiment", args=[experiment.pk])))
    assert "10 tasks at the start (2 running, 6 not started, 1 suspended, 1 finished but not reported)" in text
    assert "workunit/rsc_disk_bound" in text and "disk space and swapped memory are not emulated" in text
    assert "secret" not in str(experiment.scenario)
    signed_in.post(reverse("experiment", args=[experiment.pk]), trial(experiment))
    assert carry_out() == 1
    assert Run.objects.get().state == "done"


def test_a_zip_without_a_state_file_is_told_so(signed_in: Client) -> None:
    signed_in.post(reverse("emulate_files"), {"archive": SimpleUploadedFile("x.zip", b"PK\x05\x06" + b"\0" * 18)})
    carry_out()
    experiment = Experiment.objects.get()
    assert (
        "pack the client&#x27;s whole data folder"
        in signed_in.get(reverse("experiment", args=[experiment.pk])).content.decode()
    )
    assert not Upload.objects.exists()


def test_an_upload_of_nothing_is_refused(signed_in: Client) -> None:
    answer = signed_in.post(reverse("emulate_files"), {})
    assert "Choose a ZIP of the data folder, or client_state.xml." in text_of(answer)
    assert not Experiment.objects.exists()


def zip_of_client() -> bytes:
    """A real client's folder, and in it a file with a key."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as made:
        for file in (Path(__file__).parents[2] / "data" / "emulator" / "client_at_work").iterdir():
            made.write(file, f"BOINC/{file.name}")
        made.writestr("BOINC/account_a.xml", "<authenticator>secret</authenticator>")
    return buffer.getvalue()


def test_a_file_that_is_too_large_is_refused(signed_in: Client) -> None:
    large = SimpleUploadedFile("client_state.xml", b"x" * (16 * 1024 * 1024 + 1))
    answer = signed_in.post(reverse("emulate_files"), {"client_state": large})
    assert "The limit is 16 777 216 bytes." in text_of(answer)
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


def test_who_has_the_link_sees_it_and_nobody_else(client: Client, alice: User, bob: User) -> None:
    client.force_login(alice)
    experiment = begin(client)
    client.post(reverse("experiment", args=[experiment.pk]), trial(experiment))
    carry_out()
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


def test_who_was_given_the_link_sees_how_far_it_is(client: Client, signed_in: Client) -> None:
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


def test_cancelled_runs_are_told_of_once(signed_in: Client) -> None:
    experiment = begin(signed_in)
    page = reverse("experiment", args=[experiment.pk])
    signed_in.post(page, trial(experiment, nseeds="3"))
    begin(signed_in)
    listed = text_of(signed_in.get(reverse("emulator")))
    # The latest is the first.
    assert "Recent estimated credit · 3 seeds" in listed.partition("not started")[2]
    signed_in.post(reverse("experiment_cancel", args=[experiment.pk]))
    text = text_of(signed_in.get(page))
    assert text.count("cancelled") == 1 and "All 3 runs were cancelled." in text
    assert "Variant Idle" not in text


def test_a_computers_page_leads_to_its_emulation(signed_in: Client, studio: Host) -> None:
    page = signed_in.get(reverse("host", args=[studio.pk])).content.decode()
    assert f'action="{reverse("emulate_computer", args=[studio.pk])}"' in page


def test_a_copy_can_be_changed_and_the_first_deleted(signed_in: Client) -> None:
    experiment = begin(signed_in)
    signed_in.post(reverse("experiment", args=[experiment.pk]), trial(experiment, share0="300"))
    answer = signed_in.post(reverse("experiment_change", args=[experiment.pk]))
    copy = Experiment.objects.latest("pk")
    assert answer["Location"] == reverse("experiment", args=[copy.pk])
    assert from_json(copy.scenario).projects[0].share == 300
    signed_in.post(reverse("experiment_delete", args=[experiment.pk]))
    # Its worker comes too late, and that does no harm.
    carry_out()
    assert list(Experiment.objects.values_list("pk", flat=True)) == [copy.pk]


def test_there_is_a_limit_to_what_one_keeps(signed_in: Client, settings: Settings) -> None:
    settings.EMULATOR_EXPERIMENTS_MAX = 1
    begin(signed_in)
    answer = signed_in.post(reverse("emulate_preset", args=["s1_two_equal_cpu"]), follow=True)
    assert "which is the limit" in text_of(answer)
    assert Experiment.objects.count() == 1


def example() -> Scenario:
    facts = [ProjectFacts("A", 75, {CPU: 1.0}), ProjectFacts("B", 25, {CPU: 2.0})]
    return draft([Processor(CPU, 2, 4e9)], facts, Preferences())
