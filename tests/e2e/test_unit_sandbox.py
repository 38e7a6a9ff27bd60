"""The programs do their work with the rights that the units of deploy/ leave them."""

from __future__ import annotations

import ctypes
import os
import re
import shlex
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from credit.models import Workunit
from emulator.models import Run, RunState
from portal.models import PeriodicTask
from portal.requested_work import queue
from scheduler import tasks as project_tasks
from tests.support.credit_factories import make_app, make_workunit
from tests.support.emulator_experiments import begin, trial
from tests.support.guarded_program import GuardedProgram
from tests.support.needs import go_without
from tests.support.site_process import CHECKOUT, environment
from tests.support.wait import wait_until
from tools.benchmarks.harness.server import free_port

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.nightly]
SANDBOX = CHECKOUT / "tests" / "support" / "unit_sandbox.py"
BIN = "/srv/cobblestone/.venv/bin/"
REFUSALS = ("Read-only file system", "Operation not permitted", "PermissionError", "Address family not supported")


@pytest.fixture(autouse=True)
def _can_be_tried() -> None:
    missing = [] if os.geteuid() == 0 else ["root"]
    missing += [] if shutil.which("systemd-analyze") else ["systemd-analyze, Debian's package systemd"]
    try:
        ctypes.CDLL("libseccomp.so.2")
    except OSError:
        missing.append("libseccomp, Debian's package libseccomp2")
    if missing:
        go_without(f"{' and '.join(missing)} missing")


@pytest.fixture
def state_folder(tmp_path: Path) -> Path:
    """In place of /var/lib/cobblestone, with a folder for /tmp, as the unit has its own."""
    (tmp_path / "state" / "tmp").mkdir(parents=True)
    return tmp_path / "state"


def sandboxed(unit: str, line: str, state_folder: Path, port: int = 0) -> list[str]:
    """The unit's own command, with this Python, port and folder."""
    path = CHECKOUT / "deploy" / f"{unit}.service"
    match = re.search(rf"^{line}=(.*)$", path.read_text(), re.M)
    assert match
    text = re.sub(r"--port \d+", f"--port {port}", match[1].replace("%%", "%"))
    program, *arguments = shlex.split(text.replace("/var/lib/cobblestone", str(state_folder)))
    name = program.removeprefix(BIN)
    module = [] if name == "python" else ["-m", name]
    return [sys.executable, str(SANDBOX), str(path), str(state_folder), sys.executable, *module, *arguments]


def started(unit: str, state_folder: Path, port: int = 0) -> GuardedProgram:
    variables = environment(state_folder, TMPDIR=str(state_folder / "tmp"), GRANIAN_WORKERS="1")
    command = sandboxed(unit, "ExecStart", state_folder, port)
    return GuardedProgram(unit, command, state_folder.parent / f"{unit}.log", variables, CHECKOUT)


def assert_nothing_was_refused(program: GuardedProgram) -> None:
    assert [word for word in REFUSALS if word in program.log()] == [], program.log()


def test_the_sandbox_refuses_what_the_units_forbid(state_folder: Path) -> None:
    """Or the other tests would show nothing."""
    attempts = """
import ctypes, os, pathlib, socket, sys
def fails(attempt):
    try: attempt()
    except OSError as error: return error.strerror
print(fails(lambda: pathlib.Path(sys.argv[1], "x").write_text("x")))
print(fails(lambda: pathlib.Path("/etc/x").write_text("x")))
print(fails(lambda: os.chown(sys.argv[1], 1, 1)))
print(fails(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)))
print(ctypes.CDLL(None).unshare(0x10000000))
"""
    unit = CHECKOUT / "deploy" / "cobblestone-web.service"
    command = [sys.executable, str(SANDBOX), str(unit), str(state_folder), sys.executable, "-c", attempts]
    done = subprocess.run([*command, str(state_folder)], capture_output=True, text=True, check=True)
    said = done.stdout.splitlines()
    refused = ["Operation not permitted", "Address family not supported by protocol"]
    assert said == ["None", "Read-only file system", *refused, "-1"]


@pytest.mark.parametrize("unit", ["cobblestone-web", "cobblestone-clients"])
def test_the_servers_answer(unit: str, state_folder: Path) -> None:
    port = free_port()

    def get(path: str) -> bytes:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as reply:
                return bytes(reply.read())
        except OSError:
            return b""

    with started(unit, state_folder, port) as server:
        wait_until(lambda: get("/healthz"), f"{unit} to answer", 60)
        assert b"ok" in get("/readyz")
        assert b"<error_msg>" in get("/rpc.php")
        assert b"<project_config>" in get("/get_project_config.php")
        assert_nothing_was_refused(server)


def test_the_workers_and_the_clock_do_their_work(signed_in: Client, state_folder: Path) -> None:
    experiment = begin(signed_in)
    signed_in.post(reverse("experiment", args=[experiment.pk]), trial(experiment, days="1", nseeds="1"))
    workunit = make_workunit(make_app(), transition_at=timezone.now())

    def is_done() -> bool:
        # A message may be too old by the time that the worker is up.
        queue._tell_workers(1)
        return Run.objects.filter(state=RunState.DONE).exists()

    with (
        started("cobblestone-worker", state_folder) as worker,
        started("cobblestone-requested", state_folder) as requested,
        started("cobblestone-beat", state_folder) as beat,
    ):
        project_tasks.transition.delay()
        wait_until(lambda: Workunit.objects.get(pk=workunit.pk).results.exists(), "the transitioner", 90)
        wait_until(is_done, "the run", 90)
        wait_until(PeriodicTask.objects.exists, "the clock", 60)
        for program in (worker, requested, beat):
            assert_nothing_was_refused(program)


@pytest.mark.parametrize(
    ("unit", "line"),
    [
        ("cobblestone-check", "ExecStart"),
        ("cobblestone-check-files", "ExecStart"),
        ("cobblestone-web", "ExecStartPre"),
    ],
)
def test_the_checks_run(unit: str, line: str, state_folder: Path) -> None:
    variables = environment(state_folder, TMPDIR=str(state_folder / "tmp"))
    command = sandboxed(unit, line, state_folder)
    done = subprocess.run(command, env=variables, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [word for word in REFUSALS if word in done.stdout + done.stderr] == []


def test_a_script_runs_where_the_workers_unit_allows_it() -> None:
    """With the drop-in of docs/how-to/scripts.md, as the unit's user, who is not root."""
    program = """
from extras.scripts.sandbox import Limits, Sandbox
with Sandbox({"script": "#!/bin/sh\\necho it runs >&2\\n"}, Limits(20, 64)) as sandbox:
    print(sandbox.run("script", []))
"""
    units = ":".join(str(CHECKOUT / "deploy" / f"cobblestone-worker{end}") for end in (".service", "-scripts.conf"))
    with TemporaryDirectory() as folder:
        os.chown(folder, 65534, 65534)
        command = [sys.executable, str(SANDBOX), units, folder, sys.executable, "-c", program]
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=CHECKOUT, env=os.environ | {"TMPDIR": folder}, check=False
        )
    assert done.stdout == "(0, b'it runs\\n')\n", done.stderr
