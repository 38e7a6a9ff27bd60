"""`manage.py emulate`, run as scripts run it."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client
from django.urls import reverse

from emulator.files.presets import FOLDER, preset
from emulator.files.scenario_json import VERSION, to_json
from emulator.models import Run
from emulator.pages import reads
from emulator.runs.batch import RunOutcome
from emulator.runs.report import run_table
from tests.support.emulator_experiments import begin, carry_out, trial

ROOT = Path(__file__).parents[3]
S1 = str(FOLDER / "s1_two_equal_cpu")
EXAMPLE = ROOT / "docs" / "examples" / "earliest_deadline_policy" / "earliest_deadline_policy.py"


def emulate(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the command in an environment without any server's address."""
    servers = ("DATABASE_URL", "BROKER_URL", "CACHE_URL", "VAR_DIR")
    environment = {name: value for name, value in os.environ.items() if name not in servers}
    return subprocess.run(
        [sys.executable, "manage.py", "emulate", *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def said(*arguments: str) -> str:
    """What the command prints, run in this process."""
    out = io.StringIO()
    call_command("emulate", *arguments, "--jobs", "1", stdout=out, stderr=io.StringIO())
    return out.getvalue()


def test_it_prints_the_figures_as_json() -> None:
    printed = json.loads(said(S1, "--policy", "rec", "--days", "3", "--seed", "5", "--json"))
    assert list(printed) == ["figures_of_merit", "projects", "notes", "cpu_secs"]
    figures = ["wasted", "idle", "share_violation", "share_violation_normalised", "monotony", "rpcs_per_job"]
    attainable = ["share_violation_least", "share_violation_avoidable"]
    assert list(printed["figures_of_merit"]) == figures + attainable
    assert set(printed["projects"]) == {"A", "B"}
    assert list(printed["projects"]["A"]) == ["share", "got_fraction", "jobs", "late"]
    assert printed["projects"]["A"]["share"] == 0.5
    assert printed["notes"] == []
    assert printed["cpu_secs"] > 0


def test_a_single_run_is_a_table_and_a_figure_that_was_not_calculated_says_so() -> None:
    project = {"name": "A", "share": 0.5, "got_fraction": 0.25, "jobs": 3, "late": 1, "rpcs": 7}
    lines = run_table(RunOutcome({"wasted": 0.125, "share_violation_least": None}, [project], 1.5, None), 2).split("\n")
    assert [line.split(maxsplit=1) for line in lines[:2]] == [
        ["wasted", "0.125000"],
        ["share_violation_least", "not calculated"],
    ]
    assert lines[4].split() == ["A", "50.00%", "25.00%", "3", "1", "7"]
    assert lines[-1] == "2 days in 1.500 CPU seconds"


def test_it_goes_on_from_a_zip_of_a_data_folder_and_lists_what_is_not_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "BOINC.ZIP"
    with zipfile.ZipFile(path, "w") as made:
        for file in (ROOT / "tests" / "data" / "emulator" / "client_at_work").iterdir():
            made.write(file, f"BOINC/{file.name}")
    call_command("emulate", str(path), "--days", "1", "--unused", "--explain", "1")
    printed = capsys.readouterr().out
    assert "note: The emulation begins at 2026-11-23 19:25 UTC" in printed
    assert "not used: client_state.xml, project/user_name (2): it says who the volunteer is" in printed
    assert "Task 1 keeps running: it was running when the emulation began." in printed
    path.write_bytes(b"PK")
    with pytest.raises(CommandError, match="ZIP: this is no ZIP file"):
        call_command("emulate", str(path))


def test_it_says_what_a_policy_does_not_know() -> None:
    folder = str(FOLDER / "s2_gpu_example1")
    assert "note: Debt with preemption does not use GPUs" in said(folder, "--policy", "debt", "--days", "1")
    printed = json.loads(said(folder, "--policy", "debt", "--days", "1", "--json"))
    assert [note.partition(":")[0] for note in printed["notes"]] == ["Debt with preemption does not use GPUs"]


def test_it_reads_a_state_file_alone_with_quirks_and_explains() -> None:
    state = FOLDER / "s2_gpu_example1" / "client_state.xml"
    printed = said(str(state), "--policy", "ltd", "--quirks", "boinc", "--days", "1", "--explain", "4")
    assert "share_violation_normalised" in printed
    assert "is asked for work: " in printed


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "name a scenario"),
        (["no such thing"], 1, "there is no such file or folder, and no example of this name"),
        ([S1, "--days", "nan"], 2, "--days"),
        ([S1, "--half-life", "-1"], 2, "--half-life"),
        ([S1, "--seeds", "0"], 2, "--seeds"),
        ([S1, "--jobs", "0"], 2, "--jobs"),
        ([S1, "--json", "--csv"], 2, "exclude each other"),
        ([S1, "--policies", "none"], 1, "no policy 'none'"),
        ([S1, "--policies", "rec,rec"], 2, "each once"),
        ([S1, "--policies", ","], 2, "at least one policy"),
        ([S1, "--policies", "debt+no-eligibility"], 2, "for the policy ltd alone"),
        ([S1, "--no-eligibility"], 2, "for the policy ltd alone"),
        ([S1, "--sweep", "buffer"], 2, "such as buffer=0:5:0.5"),
        ([S1, "--sweep", "turbo=1"], 1, "turbo is none of"),
        ([S1, "--sweep", "buffer=1:0:1"], 1, "has no values"),
        ([S1, "--sweep", "buffer=1000"], 1, "1,000 is not a number from 0 to 100"),
        ([S1, "--sweep", "share:C=1"], 1, "no project C"),
        ([S1, "--seeds", "10000", "--sweep", "buffer=0:10:0.1"], 2, "the limit is 100000"),
        ([S1, "--timeline", "x.txt"], 2, "ends in .csv"),
        ([S1, "--timeline", "x.csv", "--policies", "rec,ltd"], 2, "a single policy"),
        ([S1, "--policy-file", "nowhere.py:Mine"], 1, "no file nowhere.py"),
    ],
)
def test_what_is_wrong_is_said(arguments: list[str], code: int, message: str) -> None:
    with pytest.raises(CommandError) as error:
        call_command("emulate", *arguments)
    assert message in str(error.value) and error.value.returncode == code


def test_policies_and_seeds_are_compared_with_intervals() -> None:
    printed = json.loads(said(S1, "--days", "2", "--policies", "rec,ltd,rec+boinc", "--seeds", "3", "--json"))
    assert [run["seed"] for run in printed["runs"]] == [1, 2, 3] * 3
    first, ltd, boinc = printed["variants"]
    assert (first["compared_with"], ltd["compared_with"], boinc["compared_with"]) == (None, "rec", "rec")
    values = [run["figures_of_merit"]["monotony"] for run in printed["runs"]]
    found = ltd["differences"]["monotony"]
    assert found["pairs"] == 3
    assert found["mean"] == pytest.approx(sum(values[3:6]) / 3 - sum(values[:3]) / 3)
    assert found["low"] < found["mean"] < found["high"]
    table = said(S1, "--days", "2", "--policies", "rec,ltd", "--seeds", "2")
    assert "ltd less rec, 95% interval" in table and "means of 2 seeds" in table


def test_a_sweep_is_one_line_of_csv_for_each_run() -> None:
    rows = list(csv.DictReader(io.StringIO(said(S1, "--days", "1", "--sweep", "share:A=50,100:300:100", "--csv"))))
    assert [row["value"] for row in rows] == ["50.0", "100.0", "200.0", "300.0"]
    assert list(rows[0])[:6] == ["variant", "policy", "quirks", "value", "seed", "days"]
    # A's share against B's 100, met within two parts in a hundred.
    shares = [50 / 150, 100 / 200, 200 / 300, 300 / 400]
    assert [float(row["got A"]) for row in rows] == pytest.approx(shares, abs=0.03)


@pytest.mark.system
def test_the_number_of_processes_does_not_change_the_results() -> None:
    arguments = (S1, "--days", "1", "--policies", "rec,debt", "--seeds", "2", "--csv")
    parallel = emulate(*arguments, "--jobs", "2")
    assert parallel.returncode == 0, parallel.stderr
    assert parallel.stdout == said(*arguments)
    assert "4 of 4 runs" in parallel.stderr and "runs" not in parallel.stdout


def test_examples_are_named_and_run_for_their_own_time() -> None:
    assert "document-two-processors" in said("--list") and "ltd-single" in said("--list")
    assert "20 days in" in said("document-two-processors", "--policies", "debt")


def test_no_eligibility_is_another_policy() -> None:
    gpu = ("document-gpu-and-cpu", "--days", "100", "--policies")
    rows = json.loads(said(*gpu, "ltd,ltd+no-eligibility", "--json"))["runs"]
    # The text's own example: 75 % of the GPU and so half of all for A only without its rule (docs/explanation).
    got = [run["projects"][0]["got_fraction"] for run in rows]
    assert got[0] == pytest.approx(1 / 3, abs=0.03) and got[1] == pytest.approx(0.5, abs=0.02)
    assert json.loads(said(*gpu, "ltd", "--no-eligibility", "--json"))["projects"]["A"]["got_fraction"] == got[1]


@pytest.mark.parametrize("kind", ["json", "download", "zip"])
def test_a_scenario_may_be_json_or_a_zip(kind: str, tmp_path: Path) -> None:
    known = json.loads(said(S1, "--days", "1", "--json"))
    scenario = preset("s1_two_equal_cpu").scenario
    file = tmp_path / ("scenario.zip" if kind == "zip" else "scenario.json")
    if kind == "zip":
        with zipfile.ZipFile(file, "w") as archive:
            for name in ("client_state.xml", "global_prefs.xml"):
                archive.write(FOLDER / "s1_two_equal_cpu" / name, f"boinc-client/{name}")
            archive.writestr("boinc-client/gui_rpc_auth.cfg", "a secret that nobody reads")
    else:
        data = to_json(scenario)
        file.write_text(json.dumps(data if kind == "json" else {"scenario": data, "seed": 1}))
    found = json.loads(said(str(file), "--days", "1", "--json"))
    assert found["figures_of_merit"] == known["figures_of_merit"]


@pytest.mark.parametrize(
    ("text", "message"), [("{", "not JSON"), ("[]", "wrong type"), ('{"scenario": 3}', "wrong type")]
)
def test_json_that_is_no_scenario_is_refused(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "scenario.json"
    file.write_text(text)
    with pytest.raises(CommandError, match=message):
        said(str(file))


def test_a_timeline_is_csv(tmp_path: Path) -> None:
    file = tmp_path / "schedule.csv"
    said(S1, "--days", "1", "--timeline", str(file))
    assert file.read_text().startswith("start_secs,end_secs,processor")
    with pytest.raises(CommandError, match="--timeline"):
        said(S1, "--days", "1", "--timeline", str(tmp_path / "no folder" / "x.csv"))


def test_a_policy_of_ones_own_is_compared_by_the_name_of_its_class() -> None:
    printed = json.loads(
        said(S1, "--days", "1", "--policies", "rec", "--policy-file", f"{EXAMPLE}:EarliestDeadline", "--json")
    )
    assert [run["variant"] for run in printed["runs"]] == ["rec", "EarliestDeadline"]


@pytest.mark.system
def test_the_example_package_installs_and_is_offered_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Building leaves files beside the source.
    shutil.copytree(EXAMPLE.parent, tmp_path / "source")
    target = tmp_path / "installed"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    built = subprocess.run(
        [*pip, "--target", str(target), str(tmp_path / "source")], capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stderr
    monkeypatch.syspath_prepend(target)
    offered = said("--list")
    assert "earliest-deadline" in offered and "from earliest-deadline-policy" in offered
    printed = said(S1, "--days", "1", "--policies", "rec,earliest-deadline", "--seeds", "2", "--csv")
    rows = list(csv.DictReader(io.StringIO(printed)))
    assert [row["policy"] for row in rows] == ["rec", "rec", "earliest-deadline", "earliest-deadline"]


@pytest.mark.parametrize(
    ("body", "message"), [("1 / 0", "failed in begin: ZeroDivisionError"), ("exit(1)", "SystemExit")]
)
def test_a_policy_that_fails_ends_the_command_with_a_sentence(body: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(EXAMPLE.read_text().replace("self.client = client", body))
    with pytest.raises(CommandError, match=message):
        said(S1, "--policy-file", f"{file}:EarliestDeadline")


@pytest.mark.django_db
def test_the_figures_are_those_of_the_page(signed_in: Client) -> None:
    experiment = begin(signed_in, "s4_shares_60_30_10")
    fields = trial(
        experiment, policies=["rec", "ltd"], nseeds="2", parameter="work_buf_min_days", values="0.1 2", days="3"
    )
    signed_in.post(reverse("experiment", args=[experiment.pk]), fields)
    carry_out()
    arguments = ("--days", "3", "--policies", "rec,ltd", "--seeds", "2", "--sweep", "buffer=0.1,2")
    printed = json.loads(said("s4_shares_60_30_10", *arguments, "--json"))
    runs = list(Run.objects.order_by("number"))
    keys = [(run.policy, run.value, run.seed) for run in runs]
    assert [(run["policy"], run["value"], run["seed"]) for run in printed["runs"]] == keys
    for shown, run in zip(printed["runs"], runs, strict=True):
        assert shown["figures_of_merit"] == run.figures
        assert shown["projects"] == run.projects
    for shown, row in zip(printed["variants"], reads.variants(runs), strict=True):
        for name, difference in row.differences.items():
            assert shown["differences"][name] == asdict(difference)
        assert bool(shown["differences"]) is bool(row.differences)


def test_a_document_says_what_is_tried_unless_the_options_do(tmp_path: Path) -> None:
    path = tmp_path / "tried.json"
    scenario = to_json(preset("s1_two_equal_cpu").scenario)
    tried = {"policy": "rec", "quirks": True, "seed": 7, "parameters": {"half_life_days": 3.0}}
    path.write_text(json.dumps({"version": VERSION, "scenario": scenario, **tried}))

    def figures(*arguments: str) -> Any:
        return json.loads(said(*arguments, "--days", "2", "--json"))["figures_of_merit"]

    named = [S1, "--policy", "rec", "--quirks", "boinc", "--seed", "7", "--half-life", "3"]
    assert figures(str(path)) == figures(*named)
    other = ["--policy", "ltd", "--seed", "2"]
    assert figures(str(path), *other) == figures(S1, *other) != figures(*named)
