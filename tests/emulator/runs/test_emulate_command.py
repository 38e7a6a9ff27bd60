"""`manage.py emulate`, run as scripts run it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from emulator.files.presets import FOLDER

ROOT = Path(__file__).parents[3]


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


def test_it_prints_the_figures_as_json() -> None:
    done = emulate(str(FOLDER / "s1_two_equal_cpu"), "--policy", "rec", "--days", "3", "--seed", "5", "--json")
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    assert list(printed) == ["figures_of_merit", "projects", "cpu_secs"]
    figures = ["wasted", "idle", "share_violation", "share_violation_normalised", "monotony", "rpcs_per_job"]
    attainable = ["share_violation_least", "share_violation_avoidable"]
    assert list(printed["figures_of_merit"]) == figures + attainable
    assert set(printed["projects"]) == {"A", "B"}
    assert list(printed["projects"]["A"]) == ["share", "got_fraction", "jobs", "late"]
    assert printed["projects"]["A"]["share"] == 0.5
    assert printed["cpu_secs"] > 0


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


def test_it_reads_a_state_file_alone_with_quirks_and_explains() -> None:
    state = FOLDER / "s2_gpu_example1" / "client_state.xml"
    done = emulate(str(state), "--policy", "ltd", "--quirks", "boinc", "--days", "1", "--explain", "4")
    assert done.returncode == 0, done.stderr
    assert "share_violation_normalised" in done.stdout
    assert "is asked for work: " in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([str(FOLDER / "no such folder")], "client_state.xml"),
        ([str(FOLDER / "s1_two_equal_cpu"), "--days", "nan"], "--days"),
        ([str(FOLDER / "s1_two_equal_cpu"), "--half-life", "-1"], "--half-life"),
    ],
)
def test_what_is_wrong_is_said(arguments: list[str], said: str) -> None:
    with pytest.raises(CommandError, match=said):
        call_command("emulate", *arguments)
