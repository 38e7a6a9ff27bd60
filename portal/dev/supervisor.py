"""Keeps one embedded server (PostgreSQL or Valkey) running for as long as any process holds its users' lock.

portal.dev.embedded starts it (`python -m portal.dev.supervisor KIND HOME SOCKET_DIR PROGRAMS`) and explains
the locks. It uses the standard library only, so that it starts in milliseconds.
"""

import contextlib
import fcntl
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from portal.dev.parent_death import ends_with_parent

NOBODY = 65534
STOP_LIMIT_SECS = 60.0
ASK_AGAIN_SECS = 0.5
# A server that ran this long and then ended was killed or crashed, and is started again. One that ends sooner cannot
# run.
CRASH_AFTER_SECS = 2.0


@dataclass(frozen=True)
class Server:
    """One server: its folder below the data folder, where its socket goes, and where its programs are."""

    kind: str
    home: Path
    socket_dir: Path
    programs: Path

    @property
    def data(self) -> Path:
        return self.home / "data"

    @property
    def stop_signal(self) -> signal.Signals:
        # PostgreSQL: SIGINT ends open sessions, SIGTERM would wait for them. Valkey saves at SIGTERM.
        return signal.SIGINT if self.kind == "postgres" else signal.SIGTERM

    def make_ready(self, lock: int) -> list[str]:
        """Prepare the data folder for a start, and return the server's command.

        Programs that write there inherit the open file `lock`.
        """
        return self._postgres(lock) if self.kind == "postgres" else self._valkey()

    def _valkey(self) -> list[str]:
        self.data.mkdir(mode=0o700, exist_ok=True)
        socket = self.socket_dir / "valkey.sock"
        command = [
            str(self.programs / "valkey-server"),
            "--port",
            "0",
            "--daemonize",
            "no",
            "--save",
            "60 1000",
        ]
        command += ["--unixsocket", str(socket), "--unixsocketperm", "700", "--dir", str(self.data)]
        return ends_with_parent(command, self.stop_signal)

    def _postgres(self, lock: int) -> list[str]:
        prefix = unprivileged([self.home, self.socket_dir])
        if not self.data.exists():
            self._initdb(prefix, lock)
        for name in (self.data / "postmaster.pid", self.socket_dir / ".s.PGSQL.5432.lock"):
            self._forget_if_stale(name)
        command = [
            str(self.programs / "postgres"),
            "-D",
            str(self.data),
            "-k",
            str(self.socket_dir),
            "-p",
            "5432",
        ]
        options = [
            "listen_addresses=",
            "max_connections=200",
            "shared_buffers=256MB",
            "timezone=UTC",
            "log_timezone=UTC",
        ]
        if (self.programs.parent / "lib" / "pg_stat_statements.so").exists():
            options.append("shared_preload_libraries=pg_stat_statements")
        for option in options:
            command += ["-c", option]
        return prefix + ends_with_parent(command, self.stop_signal)

    def _initdb(self, prefix: list[str], lock: int) -> None:
        # In a separate folder, renamed when complete: an interrupted initdb leaves no broken data folder.
        fresh = self.home / "data.new"
        shutil.rmtree(fresh, ignore_errors=True)
        command = [str(self.programs / "initdb"), "-D", str(fresh), "-U", "cobblestone", "--auth=trust"]
        command += [
            "--encoding=UTF8",
            "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8",
            "--locale=C.UTF-8",
        ]
        command = prefix + ends_with_parent([*command, "--no-instructions"], signal.SIGKILL)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, pass_fds=[lock], env=clean_environment())
        fresh.rename(self.data)

    def _forget_if_stale(self, pid_file: Path) -> None:
        """Remove a dead server's pid file: PostgreSQL refuses to start if another process has that number."""
        try:
            owner = int(pid_file.read_text().split()[0])
            alive = Path(f"/proc/{owner}/cwd").samefile(self.data)
        except (OSError, ValueError, IndexError):
            alive = False
        if not alive:
            pid_file.unlink(missing_ok=True)


def unprivileged(folders: list[Path]) -> list[str]:
    """The command prefix that makes PostgreSQL run for root, whom it refuses; empty for other users.

    In a user namespace the files stay root's. Where that is refused the server runs as nobody, and `folders`
    become nobody's.
    """
    if os.geteuid() != 0:
        return []
    prefix = ["unshare", "--user", f"--map-user={NOBODY}", f"--map-group={NOBODY}"]
    owner = 0
    if not runs([*prefix, "true"]):
        prefix, owner = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"], NOBODY
    for folder in folders:
        if folder.stat().st_uid != owner or any(path.stat().st_uid != owner for path in folder.glob("data")):
            subprocess.run(["chown", "-R", f"{owner}:{owner}", str(folder)], check=True)
    return prefix


def runs(command: list[str]) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def supervise(server: Server, users: int) -> None:
    """Keep the server running, through crashes, until nobody shares the lock `users`; SystemExit if it cannot run.

    Blocking threads report what happens, not signal handlers: a signal that comes just before a system call does not
    interrupt it.
    """
    events: queue.SimpleQueue[str] = queue.SimpleQueue()

    def report_last_user() -> None:
        # Kept until this process ends: new users wait until the server has stopped.
        fcntl.flock(users, fcntl.LOCK_EX)
        events.put("unused")

    threading.Thread(target=report_last_user, daemon=True).start()
    while True:
        started = time.monotonic()
        process = start(server, events)
        if events.get() == "unused":
            return end(process, server.stop_signal, events)
        print(f"{server.kind} ended with exit code {process.returncode}", flush=True)
        if time.monotonic() - started < CRASH_AFTER_SECS:
            sys.exit(1)


def start(server: Server, events: "queue.SimpleQueue[str]") -> "subprocess.Popen[bytes]":
    """Start the server; its end is put into the events."""
    # The server inherits this lock, so it is free only when no process of an earlier server is left.
    lock = os.open(server.home / "server.lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    command = server.make_ready(lock)
    process = subprocess.Popen(command, pass_fds=[lock], env=clean_environment(), umask=0o077)
    os.close(lock)

    def report_end() -> None:
        process.wait()
        events.put("ended")

    threading.Thread(target=report_end, daemon=True).start()
    return process


def end(process: "subprocess.Popen[bytes]", stop_signal: signal.Signals, events: "queue.SimpleQueue[str]") -> None:
    """Stop the server. The signal is sent repeatedly: a program that has just started may not handle it yet."""
    deadline = time.monotonic() + STOP_LIMIT_SECS
    while process.returncode is None:
        process.send_signal(stop_signal if time.monotonic() < deadline else signal.SIGKILL)
        with contextlib.suppress(queue.Empty):
            events.get(timeout=ASK_AGAIN_SECS)


def clean_environment() -> dict[str, str]:
    """The environment without PGPORT, PGDATA and the like: the shell's are not meant for this server."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PG")}


def main(kind: str, home: Path, socket_dir: Path, programs: Path) -> None:
    alive = os.open(home / "supervisor.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(alive, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return  # another supervisor is at work
    if os.fork():
        os._exit(0)  # the process that started this waits only until the lock is taken
    users = os.open(home / "users.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        supervise(Server(kind, home, socket_dir, programs), users)
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"{kind} cannot be started: {error}")
    if not socket_dir.is_relative_to(home):
        with contextlib.suppress(OSError):  # a server that had to be killed leaves its socket there
            socket_dir.rmdir()
    # Before the users' lock, which goes last: while that is held no process looks for a supervisor.
    os.close(alive)


if __name__ == "__main__":
    main(sys.argv[1], *(Path(argument) for argument in sys.argv[2:5]))
