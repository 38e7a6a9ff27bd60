"""`make run`'s process manager: ports, the Procfile, and that nothing is left behind, with real processes."""

import os
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
from pytest_django import Settings

from portal.dev import embedded, run
from portal.dev.demo_login import VOLUNTEER
from portal.dev.parent_death import ends_with_parent
from portal.models import User
from tests.support.site_process import database_url
from tests.support.wait import wait_for_lock
from tools.benchmarks.harness.server import free_port

# A supervisor gives its server a minute to write everything; then it is killed.
LIMIT_SECS = 90.0
# A manager of one service that starts a child of its own; it prints both process ids and then waits or stops.
MANAGER = """
import queue, sys
from portal.dev import run
run.STOP_LIMIT_SECS = 0.5
script = sys.argv[1] + "sleep 1000 & echo $! >&1; echo ready; wait"
service = run.start_service("demo", ["sh", "-c", script], 4, queue.SimpleQueue())
print(service.process.pid, flush=True)
sys.stdin.read()
run.stop([service])
"""


class Manager:
    def __init__(self, script: str = "") -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", MANAGER, script],
            cwd=run.PROJECT_DIR,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout
        lines = [self.process.stdout.readline() for _ in range(3)]
        assert "demo | ready\n" in lines
        numbers = [line.removeprefix("demo | ").strip() for line in lines]
        self.pids = [int(number) for number in numbers if number.isdecimal()]
        [child] = [int(line.split()[-1]) for line in lines if line.startswith("demo | ") and "ready" not in line]
        # Before that it is a copy of the shell, which takes a signal and forgets it.
        wait_until_runs(child, b"sleep")


def wait_until_runs(pid: int, program: bytes) -> None:
    deadline = time.monotonic() + LIMIT_SECS
    while Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0] != program:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def wait_until_gone(pid: int) -> None:
    deadline = time.monotonic() + LIMIT_SECS
    stat = Path(f"/proc/{pid}/stat")
    while stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < deadline, f"process {pid} is left: {Path(f'/proc/{pid}/cmdline').read_bytes()!r}"
        time.sleep(0.02)


@pytest.mark.system
def test_a_service_ends_when_the_manager_is_killed() -> None:
    manager = Manager("trap 'kill $!; exit' TERM; ")
    assert len(manager.pids) == 2
    manager.process.send_signal(signal.SIGKILL)
    manager.process.communicate()
    for pid in manager.pids:
        wait_until_gone(pid)


@pytest.mark.system
@pytest.mark.parametrize("script", ["", 'trap "" TERM; '], ids=["leaves a child", "ignores the request"])
def test_stopping_leaves_nothing_of_a_service(script: str) -> None:
    manager = Manager(script)
    manager.process.communicate("")
    assert manager.process.returncode == 0
    for pid in manager.pids:
        wait_until_gone(pid)


@pytest.mark.system
def test_the_process_manager_ends_with_make() -> None:
    # What the Makefile does, with `sh` in the place of make and `sleep` in that of the manager.
    script = f"exec {shlex.quote(sys.executable)} -I -S portal/dev/parent_death.py 15 $PPID sleep 1000"
    code = "import subprocess, sys; child = subprocess.Popen(['sh', '-c', sys.argv[1]]);"
    code += "print(child.pid, flush=True); child.wait()"
    command = [sys.executable, "-c", code, script]
    with subprocess.Popen(command, cwd=run.PROJECT_DIR, stdout=subprocess.PIPE, text=True) as make:
        assert make.stdout
        pid = int(make.stdout.readline())
        wait_until_runs(pid, b"sleep")
        make.kill()
    wait_until_gone(pid)


def test_a_port_that_somebody_shares_is_reported_as_busy() -> None:
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        other.bind((run.HOST, 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(SystemExit, match=rf"Port {port} cannot be used .* make run PORT="):
            run.claim_port(port)


def test_a_port_can_be_claimed_once_and_still_served_on() -> None:
    port = free_port()
    with run.claim_port(port):
        with pytest.raises(SystemExit):
            run.claim_port(port)
        with socket.socket() as server:  # as the web server does
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            server.bind((run.HOST, port))
            server.listen()
            with socket.create_connection((run.HOST, port), timeout=5):
                pass


@pytest.mark.system
def test_a_data_folder_has_one_site_at_a_time_and_the_second_is_told_of_the_first(tmp_path: Path) -> None:
    code = "import sys, pathlib; from portal.dev import run;"
    code += "held = run.claim_data(pathlib.Path(sys.argv[1]), 18500); print('held', flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", code, str(tmp_path / "new")]
    first = subprocess.Popen(command, cwd=run.PROJECT_DIR, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert first.stdout and first.stdout.readline() == "held\n"
    with pytest.raises(SystemExit) as refused:
        run.claim_data(tmp_path / "new", 18501)
    told = str(refused.value)
    assert f"process {first.pid}, which serves http://127.0.0.1:18500/" in told and f"`kill {first.pid}`" in told
    first.kill()
    first.communicate()
    os.close(run.claim_data(tmp_path / "new", 18501))


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("demo", "account", "is_shown"),
    [(True, VOLUNTEER.email, True), (False, VOLUNTEER.email, False), (True, "a@b.org", False)],
)
def test_the_demo_login_is_shown_where_it_works(
    demo: bool, account: str, is_shown: bool, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    User.objects.create_user(account, "cobblestone")
    settings.DEMO, settings.DATABASE_URL = demo, database_url()
    run.greet(8000)
    assert ("Demo login" in capsys.readouterr().out) == is_shown


@pytest.mark.parametrize("text", ["0", "65536", "-1", "http", "8000.5", "8 000"])
def test_a_port_out_of_range_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("PORT", text)
    with pytest.raises(SystemExit, match="a number from 1 to 65535"):
        run.read_port()


def test_the_procfile_names_web_workers_and_beat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORT", "8123")
    commands = run.read_procfile()
    assert list(commands) == ["web", "worker", "requested", "beat"]
    assert commands["web"][commands["web"].index("--port") + 1] == "8123"


@pytest.mark.system
def test_the_site_does_not_start_after_a_failed_command() -> None:
    with pytest.raises(SystemExit, match="no_such_command` failed"):
        run.manage("no_such_command")


@pytest.mark.system
def test_a_command_that_does_not_exist_is_named() -> None:
    command = ends_with_parent(["no-such-program"])
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "no-such-program cannot be run: No such file or directory\n")


class WholeSite:
    """`make run`'s process with a data folder of its own, nothing of the surroundings' servers, and a free port."""

    def __init__(self, var_dir: Path) -> None:
        self._var_dir = var_dir
        self._mark = f"VAR_DIR={var_dir}".encode()
        self.port = free_port()
        own = ("DATABASE_URL", "BROKER_URL", "CACHE_URL", "SITE_URL", "DJANGO_SETTINGS_MODULE")
        environment = {name: value for name, value in os.environ.items() if name not in own}
        # Compressing takes seconds.
        environment["STATICFILES_STORAGE"] = "whitenoise.storage.ManifestStaticFilesStorage"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "portal.dev.run"],
            cwd=run.PROJECT_DIR,
            env=environment | {"VAR_DIR": str(var_dir), "PORT": str(self.port)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def wait_until_ready(self) -> None:
        assert self.process.stdout
        lines = []
        for line in self.process.stdout:
            lines.append(line)
            if "Ctrl-C ends it." in line:
                return
            if "does not answer" in line:
                break
        pytest.fail("the site did not start:\n" + "".join(lines))

    def page(self, path: str) -> str:
        with urllib.request.urlopen(f"http://{run.HOST}:{self.port}{path}", timeout=30) as answer:
            return str(answer.read().decode())

    def end(self, how: signal.Signals) -> int:
        """The exit code, once no process of the site is left."""
        self.process.send_signal(how)
        self.process.communicate(timeout=LIMIT_SECS)
        for pid in self.processes():
            wait_until_gone(pid)
        for lock in self._var_dir.rglob("server.lock"):  # a server's own children hold it too
            wait_for_lock(lock)
        return self.process.returncode

    def processes(self) -> list[int]:
        """All that were started with this data folder, the servers among them."""
        found = []
        for entry in Path("/proc").iterdir():
            with suppress(OSError):
                if entry.name.isdecimal() and self._mark in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
        return found

    def own_projects(self) -> list[str]:
        """The addresses of this site's own project and of others that look like one."""
        folder = (self._var_dir / "postgres" / "socket_dir").read_text()
        with psycopg.connect(host=folder, port=5432, user=embedded.DATABASE, dbname=embedded.DATABASE) as connection:
            found = connection.execute(
                "SELECT master_url FROM accounting_project WHERE is_own OR master_url LIKE 'http://127.0.0.1%'"
            )
            return [url for (url,) in found]


@pytest.mark.system
def test_the_whole_site_starts_twice_and_leaves_nothing_when_killed_or_stopped(tmp_path: Path) -> None:
    var_dir = tmp_path / "data folder"
    site = WholeSite(var_dir)
    try:
        site.wait_until_ready()
        assert "Look around" in site.page("/")
        running = b" ".join(Path(f"/proc/{pid}/cmdline").read_bytes() for pid in site.processes())
        for part in (b"granian", b"worker", b"beat", b"portal.dev.supervisor", b"bin/postgres"):
            assert part in running
        second = WholeSite(var_dir)
        told, _ = second.process.communicate(timeout=LIMIT_SECS)
        assert second.process.returncode == 1
        assert f"process {site.process.pid}, which serves http://127.0.0.1:{site.port}/" in told
        assert "database" not in told and site.page("/")
    finally:
        code = site.end(signal.SIGKILL)
    assert code == -signal.SIGKILL
    again = WholeSite(var_dir)
    try:
        again.wait_until_ready()
        assert "Cobblestone" in again.page("/")
        # On another port the own project goes along; no second one is left at the first.
        assert again.port != site.port and again.own_projects() == [f"http://127.0.0.1:{again.port}/project/"]
    finally:
        code = again.end(signal.SIGINT)
    assert code == 0
