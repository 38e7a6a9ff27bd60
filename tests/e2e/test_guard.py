"""The guard of the end-to-end tests: nothing that they started outlives them."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import process_guard
from tests.support.wait import wait_until

pytestmark = pytest.mark.system

# Starts a process in a session of its own, which no signal to the group reaches, and waits.
FAMILY = "setsid sleep 1000 & echo $$ $! > pids; wait"
# A "test" that starts the family under a guard and then hangs.
HANGING_TEST = f"""
import subprocess, sys
from tests.support import process_guard as guard
subprocess.Popen(guard.command(["/bin/sh", "-c", {FAMILY!r}]), cwd=sys.argv[1]).wait()
"""


def running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def family_pids(folder: Path) -> list[int]:
    file = folder / "pids"
    return [int(pid) for pid in file.read_text().split()] if file.exists() else []


def test_stopping_the_guard_ends_the_whole_family(tmp_path: Path) -> None:
    guarded = subprocess.Popen(process_guard.command(["/bin/sh", "-c", FAMILY]), cwd=tmp_path)
    pids = wait_until(lambda: family_pids(tmp_path), "the family to start", 20)
    assert [running(pid) for pid in pids] == [True, True]
    guarded.terminate()
    assert guarded.wait(20) == 128 + signal.SIGTERM
    assert [running(pid) for pid in pids] == [False, False]


def test_a_killed_test_leaves_no_process_behind(tmp_path: Path) -> None:
    test = subprocess.Popen(
        [sys.executable, "-c", HANGING_TEST, str(tmp_path)], cwd=Path(__file__).parents[2], env=os.environ
    )
    pids = wait_until(lambda: family_pids(tmp_path), "the family to start", 20)
    test.kill()
    test.wait()
    wait_until(lambda: not any(running(pid) for pid in pids), "the family to end", 20)


def test_a_guarded_command_s_exit_code_comes_through(tmp_path: Path) -> None:
    assert subprocess.run(process_guard.command(["/bin/sh", "-c", "exit 7"]), cwd=tmp_path, check=False).returncode == 7
