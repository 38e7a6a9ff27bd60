"""`make run`: prepare the site, then run the Procfile's processes until one ends or Ctrl-C.

Every process has a session of its own and is told to end when this one ends, even by kill -9 (portal.dev.parent_death).
At a stop, each is asked without its children, so that a Celery worker can finish its tasks. What is left of its session
after STOP_LIMIT_SECS is killed.
"""

import contextlib
import fcntl
import os
import queue
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import NoReturn

import psycopg

from portal.dev import embedded
from portal.dev.demo_login import VOLUNTEER
from portal.dev.parent_death import ends_with_parent
from portal.languages.compiling import compile_stale

PROJECT_DIR = Path(__file__).resolve().parents[2]
HOST = "127.0.0.1"
STOP_LIMIT_SECS = 10.0
ANSWER_LIMIT_SECS = 60.0
LOOK_AFTER_SERVERS_SECS = 5.0
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stop(BaseException):
    """This process was asked to end."""


@dataclass(frozen=True)
class Service:
    """A running line of the Procfile."""

    name: str
    process: "subprocess.Popen[bytes]"


def stop_requested(_signal: int, _frame: FrameType | None) -> None:
    raise Stop


def read_port() -> int:
    """The port to serve on, from the environment; SystemExit if it is not a port."""
    text = os.environ.get("PORT") or "8000"
    if not text.isdecimal() or not 1 <= int(text) <= 65535:
        sys.exit(f"PORT is {text!r}, but a port is a number from 1 to 65535.")
    return int(text)


def claim_data(var_dir: Path, port: int) -> int:
    """Lock the data folder until this process ends. SystemExit if another process has it; nothing there changes then.

    The kernel frees the lock however the process ends. The file has its process id and port, for those who come later.
    """
    try:
        var_dir.mkdir(parents=True, exist_ok=True)
        claim = os.open(var_dir / "run.lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        sys.exit(f"The data folder cannot be used: {error}. Set VAR_DIR to a folder of yours.")
    try:
        fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit(refusal_of_data(var_dir, os.read(claim, 100).decode("ascii", "replace").split()))
    os.ftruncate(claim, 0)
    os.pwrite(claim, f"{os.getpid()} {port}\n".encode("ascii"), 0)
    return claim


def refusal_of_data(var_dir: Path, holder: list[str]) -> str:
    """Why a second site cannot run on the same data, and what to do; ``holder``: process id and port of the first."""
    pid, port = (*holder, "?", "?")[:2]  # it may not have written them yet
    return (
        f"Another `make run` uses {var_dir}: process {pid}, which serves http://{HOST}:{port}/. Nothing was changed.\n"
        f"Use that site, or end it first: Ctrl-C where it was started, or `kill {pid}`.\n"
        "For a second site, choose another folder and port: VAR_DIR=… PORT=… make run"
    )


def claim_port(port: int) -> socket.socket:
    """A bound socket that makes another `make run` see the port as taken; SystemExit when it is in use.

    The web server shares its port with any other program that allows it, so it would never report a busy one itself.
    """
    with socket.socket() as alone:
        alone.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            alone.bind((HOST, port))
            alone.listen()
        except OSError as error:
            sys.exit(f"Port {port} cannot be used ({error.strerror}). Choose another one: make run PORT=…")
    claim = socket.socket()
    claim.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    claim.bind((HOST, port))
    return claim


def prepare(var_dir: Path) -> None:
    """Bring texts, database, keys, demo data and static files up to date; SystemExit if that fails."""
    compile_stale()
    print("Preparing the database…", flush=True)
    manage("migrate", "--verbosity", "0")
    manage("prepare", "--follow-address")
    stamp = var_dir / "static.stamp"
    sources = [PROJECT_DIR / "requirements.txt", *(PROJECT_DIR / "static").rglob("*")]
    if not stamp.exists() or stamp.stat().st_mtime < max(path.stat().st_mtime for path in sources):
        # The stamp gets the time of the start, so that a file changed meanwhile counts as newer.
        started = time.time()
        manage("collectstatic", "--no-input", "--clear", "--verbosity", "0")
        stamp.touch()
        os.utime(stamp, (started, started))


def manage(*arguments: str) -> None:
    process = start_process([sys.executable, "manage.py", *arguments])
    if process.wait() != 0:
        sys.exit(f"`manage.py {arguments[0]}` failed; the site was not started.")


def start_process(command: list[str], stdout: int | None = None) -> "subprocess.Popen[bytes]":
    """Start a command of the project in a session of its own; it ends with this process."""
    return subprocess.Popen(
        ends_with_parent(command),
        cwd=PROJECT_DIR,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.STDOUT if stdout else None,
        start_new_session=True,
    )


def read_procfile() -> dict[str, list[str]]:
    """Read the commands by name. $PORT and the like are replaced after splitting: a path may have spaces."""
    commands = {}
    for line in (PROJECT_DIR / "Procfile").read_text().splitlines():
        name, _, command = line.partition(":")
        commands[name] = [os.path.expandvars(word) for word in shlex.split(command)]
    return commands


def start_service(name: str, command: list[str], width: int, ended: "queue.SimpleQueue[str]") -> Service:
    process = start_process(command, stdout=subprocess.PIPE)

    def show_output() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            show(f"{name:{width}} | {line.decode(errors='replace').rstrip()}")

    def report_end() -> None:
        process.wait()
        ended.put(name)

    threading.Thread(target=show_output, daemon=True).start()
    threading.Thread(target=report_end, daemon=True).start()
    return Service(name, process)


def show(text: str) -> None:
    # Even when the terminal is gone, the services' output must be read, or they block.
    with contextlib.suppress(OSError):
        print(text, flush=True)


def site_answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://{HOST}:{port}/healthz", timeout=2):
            return True
    except (urllib.error.URLError, OSError):
        return False


def serve(port: int) -> str:
    """Run the services until one of them ends, and return its name; no service is left, also after Stop."""
    ended: queue.SimpleQueue[str] = queue.SimpleQueue()
    services: list[Service] = []
    commands = read_procfile()
    width = max(map(len, commands))
    try:
        for name, command in commands.items():
            services.append(start_service(name, command, width, ended))
        deadline = time.monotonic() + ANSWER_LIMIT_SECS
        while time.monotonic() < deadline:
            if site_answers(port):
                greet(port)
                break
            try:
                return ended.get(timeout=0.2)
            except queue.Empty:
                continue
        else:
            show(f"The site does not answer after {ANSWER_LIMIT_SECS:.0f} s. See its output above.")
        return wait_for_end(ended)
    finally:
        stop(services)


def wait_for_end(ended: "queue.SimpleQueue[str]") -> str:
    """Return the first service that ends. Meanwhile embedded servers that were killed are started again."""
    while True:
        try:
            return ended.get(timeout=LOOK_AFTER_SERVERS_SECS)
        except queue.Empty:
            embedded.revive()


def greet(port: int) -> None:
    show(f"\n  Cobblestone is ready:  http://{HOST}:{port}/")
    if has_demo_account():
        show(f"  Demo login:            {VOLUNTEER.email} / {VOLUNTEER.password}")
    show("  Ctrl-C ends it.\n")


def has_demo_account() -> bool:
    """Whether the demo is on and has its volunteer: `prepare` makes none if there is an account already."""
    from django.conf import settings

    if not settings.DEMO:
        return False
    with psycopg.connect(settings.DATABASE_URL) as connection:
        return bool(connection.execute("SELECT 1 FROM portal_user WHERE email = %s", [VOLUNTEER.email]).fetchone())


def stop(services: list[Service]) -> None:
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    for service in services:
        service.process.terminate()
    deadline = time.monotonic() + STOP_LIMIT_SECS
    for service in services:
        try:
            service.process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            show(f"{service.name} did not end within {STOP_LIMIT_SECS:.0f} s and is killed.")
        with contextlib.suppress(ProcessLookupError):  # all of its session has ended
            os.killpg(service.process.pid, signal.SIGKILL)


def main() -> NoReturn:
    for number in STOP_SIGNALS:
        # Under nohup SIGHUP is ignored already, and stays so.
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, stop_requested)
    port = read_port()
    var_dir = Path(os.environ.get("VAR_DIR") or PROJECT_DIR / "var").resolve()
    os.environ.update(PORT=str(port), VAR_DIR=str(var_dir), DJANGO_SETTINGS_MODULE="portal.settings")
    # `prepare` has run the checks by then.
    os.environ.setdefault("CELERY_SKIP_CHECKS", "1")
    # The services write into a pipe, which is read here.
    os.environ.setdefault("LOG_FORMAT", "console" if sys.stdout.isatty() else "json")
    # The Procfile says "python" and means this one.
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    _ = claim_data(var_dir, port)
    try:
        with claim_port(port):
            read_settings()
            prepare(var_dir)
            name = serve(port)
    except Stop:
        show("Stopped.")
        sys.exit(0)
    sys.exit(f"{name} ended, so the site was stopped. See its output above.")


def read_settings() -> None:
    """Read the settings here too, so that embedded servers, if any, run from the first step to the last."""
    from django.conf import settings

    if settings.DEMO:
        # The demo's volunteer, whose data visitors look around in. Without demo data there is no such account.
        os.environ.setdefault("DEMO_ACCOUNT", VOLUNTEER.email)


if __name__ == "__main__":
    main()
