"""A run's page: its tables, downloads and colours."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from django.test import Client
from django.urls import reverse
from django.utils.translation import override

from emulator.engine.timeline.reasons import Reason
from emulator.files.scenario_json import from_json
from emulator.models import Experiment, Run
from emulator.pages import downloads
from emulator.pages.reads import colours
from emulator.pages.texts import row_texts
from emulator.runs.packed_timeline import Packed
from portal.requested_work import queue
from tests.support.accounting_factories import make_project
from tests.support.emulator_experiments import begin, carry_out, trial
from tests.support.page_text import text_of

GERMAN = {"Accept-Language": "de"}


def test_the_tables_of_a_run_are_pages_too(signed_in: Client) -> None:
    experiment = begin(signed_in)
    signed_in.post(reverse("experiment", args=[experiment.pk]), trial(experiment, days="20"))
    carry_out()
    address = f"{reverse('emulator_table', args=[experiment.pk, 1, 'blocks'])}?row=100"
    page = signed_in.get(address).content.decode()
    assert page.count("<h1") == 1 and page.count("<tr") > 2
    rows = signed_in.get(address, headers={"HX-Request": "true", "HX-Target": "more-blocks"}).content.decode()
    assert rows.lstrip().startswith("<tr") and "<h1" not in rows
    for wrong in ("noon", "inf"):
        shown = text_of(signed_in.get(reverse("emulator_table", args=[experiment.pk, 1, "rpcs"]), {"from": wrong}))
        assert f"“{wrong}” is not a time in seconds." in shown and "day 0" in shown


def test_each_figure_has_a_verdict_beside_it_and_in_a_sentence(signed_in: Client) -> None:
    experiment = begin(signed_in)
    signed_in.post(reverse("experiment", args=[experiment.pk]), trial(experiment))
    carry_out()
    run = Run.objects.get()
    page = signed_in.get(reverse("emulator_run", args=[experiment.pk, 1])).content.decode()
    level = r'<span class="badge[^"]*">(good|fair|poor)</span>'
    beside = re.findall(rf"<dd>[\d.]+ {level}</dd>", page)
    told = re.findall(rf"<li><strong>[^<]+</strong> {level} \w[^<]+\.</li>", page)
    assert run.figures and beside == told and 4 < len(told) <= len(run.figures)


def test_downloads_have_what_the_page_shows(signed_in: Client) -> None:
    experiment = begin(signed_in)
    signed_in.post(reverse("experiment", args=[experiment.pk]), trial(experiment))
    carry_out()
    run = Run.objects.get()
    saved = json.loads(signed_in.get(reverse("emulator_json", args=[experiment.pk, 1])).content)
    assert saved["figures_of_merit"] == run.figures
    assert from_json(saved["scenario"]) == from_json(Experiment.objects.get().scenario)
    for what, header in (("blocks", "start_secs,"), ("rpcs", "at_secs,"), ("decisions", "at_secs,")):
        answer = signed_in.get(reverse("emulator_csv", args=[experiment.pk, 1, what]), headers=GERMAN)
        lines = b"".join(answer).decode().splitlines()
        assert lines[0].startswith(header)
        assert len(lines) > 5
        # A program reads the same sentences, whatever language its owner reads.
        assert what != "decisions" or lines[1].endswith(
            "is asked for work: the CPU is not busy up to the minimum buffer."
        )
    for what, said in (("decisions", "is asked for work"), ("rpcs", "s of work and got"), ("blocks", "CPU 0: task")):
        address = reverse("emulator_table", args=[experiment.pk, 1, what])
        rows = text_of(signed_in.get(address, {"from": 43_200}, headers={"HX-Target": f"more-{what}"}))
        assert said in rows
        assert what == "blocks" or rows.startswith(("day 0, 1", "day 1"))
    assert signed_in.get(reverse("emulator_table", args=[experiment.pk, 1, "odd"])).status_code == 404


def test_a_policy_without_gpus_is_named_beside_the_figures(signed_in: Client) -> None:
    experiment = begin(signed_in, "s2_gpu_example1")
    signed_in.post(reverse("experiment", args=[experiment.pk]), trial(experiment, policies=["rec", "debt"]))
    carry_out()
    said = "Debt with preemption does not use GPUs"
    assert said in text_of(signed_in.get(reverse("experiment", args=[experiment.pk])))
    for number, is_said in ((1, False), (2, True)):
        assert (said in text_of(signed_in.get(reverse("emulator_run", args=[experiment.pk, number])))) == is_said
        saved = json.loads(signed_in.get(reverse("emulator_json", args=[experiment.pk, number])).content)
        assert (said in "".join(saved["notes"])) == is_said
    german = text_of(signed_in.get(reverse("emulator_run", args=[experiment.pk, 2]), headers=GERMAN))
    assert "Schuld mit Verdrängung nutzt keine GPUs" in german


def test_buffer_standing_and_availability_are_downloads_and_tables_too(signed_in: Client) -> None:
    experiment = begin(signed_in)
    signed_in.post(reverse("experiment", args=[experiment.pk]), trial(experiment, policies=["ltd"]))
    carry_out()

    def lines_of(what: str) -> list[str]:
        answer = signed_in.get(reverse("emulator_csv", args=[experiment.pk, 1, what]), headers=GERMAN)
        return b"".join(answer).decode().splitlines()

    header, *levels = lines_of("levels")
    assert header == "at_secs,buffer_secs CPU,standing A,standing B"
    # One project's debt is another's credit; a number below zero stays a number.
    rows = [[float(word) for word in line.split(",")] for line in levels]
    assert any(standing < 0 for row in rows for standing in row[2:])
    assert lines_of("states") == ["from_secs,state", "0.0,may compute"]
    assert lines_of("misses") == ["at_secs,project,job,late_secs"]
    page = reverse("experiment", args=[experiment.pk])
    text = text_of(signed_in.get(page))
    assert "Buffer: CPU" in text and "Late tasks 0" in text
    german = text_of(signed_in.get(page, headers=GERMAN))
    assert "Puffer: CPU" in german and "Verspätete Aufgaben 0" in german


def test_a_late_task_is_told_with_its_lateness() -> None:
    columns = {
        "misses.at_secs": np.array([90_000.0]),
        "misses.project": np.array([0]),
        "misses.job": np.array([7]),
        "misses.late_secs": np.array([5_400.0]),
    }
    packed = Packed(columns, {"projects": ["=A"]})
    # 5,400 s are 90 minutes.
    assert row_texts.miss(packed, 0)["why"] == "Task 7 is late: 90\u00a0min past its deadline"
    # A spreadsheet must not take a name for a formula.
    assert list(downloads.misses_csv(packed))[1].strip() == "90000.0,'=A,7,5400.0"


def test_a_decision_says_how_late_in_a_handy_unit_and_files_in_seconds() -> None:
    columns = {
        "decisions.at_secs": np.array([90_000.0]),
        "decisions.kind": np.array([0]),
        "decisions.reason": np.array([int(Reason.JOB_LATE)]),
        "decisions.processor": np.array([0]),
        "decisions.project": np.array([0]),
        "decisions.job": np.array([7]),
        "decisions.amount": np.array([5_400.0]),
    }
    packed = Packed(columns, {"projects": ["A"], "kinds": ["CPU"], "decisions_dropped": 0})
    assert row_texts.decision(packed, 0)["why"] == "Task 7 finished 90\u00a0min after its deadline."
    with override("de"):
        assert "5400 s" in list(downloads.decisions_csv(packed))[1]


@pytest.mark.django_db
def test_a_project_of_the_site_has_its_colour_in_a_timeline_too() -> None:
    make_project("Alpha", colour=1)
    make_project("Beta", colour=9)
    # Beta's ninth colour is the second, which Alpha has: it takes the first free one, as do those nobody knows.
    assert colours(["Alpha", "Beta", "x", "y"]) == [1, 0, 2, 3]
    assert colours(["x", "Beta"]) == [0, 1]
    assert sorted(colours([str(number) for number in range(10)])) == [0, 0, 1, 1, 2, 3, 4, 5, 6, 7]


def test_while_the_kernel_is_compiled_the_progress_says_that_runs_are_slower(
    signed_in: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = begin(signed_in)
    page = reverse("experiment", args=[experiment.pk])
    signed_in.post(page, trial(experiment, nseeds="2"))
    said = "The emulator is being compiled"
    assert said not in text_of(signed_in.get(page))
    # As in a worker's process whose folder has no compiled kernel yet.
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "0")
    assert queue.carry_out_next()
    assert said in text_of(signed_in.get(page))
