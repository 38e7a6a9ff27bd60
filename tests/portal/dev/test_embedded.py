"""The embedded servers, with real processes: found, shared, killed and started again."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from portal.dev import embedded
from tests.support.wait import wait_for_lock

# Uses the servers below argv[1] until its input ends, and revives them at each line of it. With "fork" a child takes
# that over and the parent ends.
USER = """
import json, os, sys
from pathlib import Path
from portal.dev import embedded
urls = embedded.ensure(Path(sys.argv[1]))
if "fork" in sys.argv and os.fork():
    os._exit(0)
print(json.dumps([urls.database_url, urls.broker_url, urls.cache_url, os.getpid()]), flush=True)
for line in sys.stdin:
    embedded.revive()
    print("revived", flush=True)
"""
LIMIT_SECS = 30.0


class User:
    """A process that needs the servers, and what it was told about them."""

    def __init__(self, var_dir: Path, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", USER, str(var_dir), *arguments],
            cwd=embedded.PROJECT_DIR,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._told: list[Any] = []

    @property
    def told(self) -> list[Any]:
        assert self.process.stdout
        self._told = self._told or json.loads(self.process.stdout.readline())
        return self._told

    @property
    def database_url(self) -> str:
        return str(self.told[0])

    def end(self, how: signal.Signals = signal.SIGKILL) -> None:
        self.process.send_signal(how)
        self.process.communicate()


@pytest.fixture
def users(tmp_path: Path) -> Iterator[list[User]]:
    """Users to start; none is left afterwards, and so no server."""
    started: list[User] = []
    yield started
    for user in started:
        user.end()
    for lock in tmp_path.rglob("server.lock"):
        wait_for_lock(lock)


def processes_in(folder: Path) -> list[int]:
    """The processes whose working directory is `folder` or below: servers work in their data folder."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdecimal() and (entry / "cwd").readlink().is_relative_to(folder):
                found.append(int(entry.name))
    return found


def query(url: str, statement: str) -> Any:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchone() if cursor.description else None


def supervisors(var_dir: Path) -> list[int]:
    """The supervisors of the servers below `var_dir`, without children that have not become a server yet."""
    parents = {}
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdecimal() else []
            if b"portal.dev.supervisor" in words and os.fsencode(var_dir) in b"\0".join(words):
                # In stat(5) of proc, what follows the name in brackets is the state and then the parent.
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    return [process for process, parent in parents.items() if parent not in parents]


@pytest.mark.system
def test_processes_that_start_at_once_share_one_pair_of_servers(tmp_path: Path, users: list[User]) -> None:
    users += [User(tmp_path) for _ in range(4)]
    told = [user.told[:3] for user in users]
    assert told == [told[0]] * 4
    assert len(supervisors(tmp_path)) == 2  # one for PostgreSQL, one for Valkey


@pytest.mark.system
def test_the_servers_end_when_their_only_user_is_killed(tmp_path: Path, users: list[User]) -> None:
    users.append(User(tmp_path))
    assert users[0].told
    assert processes_in(tmp_path)
    users[0].end(signal.SIGKILL)
    for kind in ("postgres", "valkey"):
        wait_for_lock(tmp_path / kind / "server.lock")
        wait_for_lock(tmp_path / kind / "supervisor.lock")
    assert processes_in(tmp_path) == []


@pytest.mark.system
def test_a_second_user_keeps_the_servers_when_the_first_ends(tmp_path: Path, users: list[User]) -> None:
    users.append(User(tmp_path))
    started_at = query(users[0].database_url, "SELECT pg_postmaster_start_time()")
    users.append(User(tmp_path))
    assert users[1].told[:3] == users[0].told[:3]
    users[0].end()
    assert query(users[1].database_url, "SELECT pg_postmaster_start_time()") == started_at


@pytest.mark.system
def test_a_forked_child_keeps_the_servers_after_its_parent(tmp_path: Path, users: list[User]) -> None:
    users.append(User(tmp_path, "fork"))
    child = users[0].told[3]
    assert child != users[0].process.pid
    users[0].process.wait()
    assert query(users[0].database_url, "SELECT 1") == (1,)
    os.kill(child, signal.SIGKILL)
    wait_for_lock(tmp_path / "postgres" / "server.lock")


@pytest.mark.system
def test_a_second_start_finds_the_data_of_the_first(tmp_path: Path, users: list[User]) -> None:
    users.append(User(tmp_path))
    query(users[0].database_url, "CREATE TABLE kept AS SELECT 42 AS answer")
    users[0].end()
    users.append(User(tmp_path))
    assert query(users[1].database_url, "SELECT answer FROM kept") == (42,)


@pytest.mark.system
def test_a_killed_postgres_is_started_again_with_its_data(tmp_path: Path, users: list[User]) -> None:
    users.append(User(tmp_path))
    query(users[0].database_url, "CREATE TABLE kept AS SELECT 42 AS answer")
    pid_file = tmp_path / "postgres" / "data" / "postmaster.pid"
    killed = int(pid_file.read_text().split()[0])
    # Killed so young it is taken for a server that cannot run, and its supervisor ends: the next user starts again.
    os.kill(killed, signal.SIGKILL)
    users.append(User(tmp_path))
    assert query(users[1].database_url, "SELECT answer FROM kept") == (42,)
    assert int(pid_file.read_text().split()[0]) != killed


@pytest.mark.system
def test_killed_supervisors_are_replaced_by_the_next_start(tmp_path: Path, users: list[User]) -> None:
    users.append(User(tmp_path))
    query(users[0].database_url, "CREATE TABLE kept AS SELECT 42 AS answer")
    for supervisor in supervisors(tmp_path):
        os.kill(supervisor, signal.SIGKILL)
    users.append(User(tmp_path))
    assert query(users[1].database_url, "SELECT answer FROM kept") == (42,)


@pytest.mark.system
def test_a_user_revives_killed_servers(tmp_path: Path, users: list[User]) -> None:
    users.append(User(tmp_path))
    assert users[0].told
    killed = supervisors(tmp_path)
    for supervisor in killed:
        os.kill(supervisor, signal.SIGKILL)
    for kind in ("postgres", "valkey"):
        wait_for_lock(tmp_path / kind / "supervisor.lock")
    assert users[0].process.stdin and users[0].process.stdout
    users[0].process.stdin.write(b"\n")
    users[0].process.stdin.flush()
    assert users[0].process.stdout.readline() == b"revived\n"
    assert len(supervisors(tmp_path)) == 2
    assert not set(supervisors(tmp_path)) & set(killed)


@pytest.mark.system
@pytest.mark.parametrize("name", ["data/postmaster.pid", "run/.s.PGSQL.5432.lock"])
@pytest.mark.parametrize("owner", ["a living process", "nobody"])
def test_what_a_power_cut_leaves_does_not_hinder(tmp_path: Path, users: list[User], name: str, owner: str) -> None:
    users.append(User(tmp_path))
    query(users[0].database_url, "CREATE TABLE kept AS SELECT 42 AS answer")
    left = tmp_path / "postgres" / name
    lines = left.read_text().split("\n")
    users[0].end()
    for kind in ("postgres", "valkey"):
        wait_for_lock(tmp_path / kind / "server.lock")
    # After the next start of the machine the number is another's; or what was written last is lost.
    left.write_text("\n".join([str(os.getpid()), *lines[1:]]) if owner == "a living process" else "")
    for kind, socket in (("postgres", ".s.PGSQL.5432"), ("valkey", "valkey.sock")):
        (tmp_path / kind / "run" / socket).touch()
    users.append(User(tmp_path))
    assert query(users[1].database_url, "SELECT answer FROM kept") == (42,)


@pytest.mark.system
@pytest.mark.parametrize("name", ["two words & 100%", "long" * 40], ids=["spaces", "too long for a socket"])
def test_any_folder_will_do(tmp_path: Path, users: list[User], name: str) -> None:
    var_dir = tmp_path / name
    users.append(User(var_dir))
    assert query(users[0].database_url, "SELECT current_database()") == ("cobblestone",)
    socket_dir = Path((var_dir / "valkey" / "socket_dir").read_text())
    assert socket_dir.stat().st_mode & 0o777 == 0o700


@pytest.mark.system
def test_a_socket_folder_outside_goes_with_the_server(tmp_path: Path, users: list[User]) -> None:
    var_dir = tmp_path / ("long" * 40)
    users.append(User(var_dir))
    assert users[0].told
    outside = [Path((var_dir / kind / "socket_dir").read_text()) for kind in ("postgres", "valkey")]
    assert all(folder.parent == Path(tempfile.gettempdir()) and folder.is_dir() for folder in outside)
    users[0].end()
    for kind in ("postgres", "valkey"):
        wait_for_lock(var_dir / kind / "supervisor.lock")
    assert not any(folder.exists() for folder in outside)


@pytest.mark.system
def test_only_the_servers_asked_for_are_started(tmp_path: Path) -> None:
    code = "import sys; from pathlib import Path; from portal.dev import embedded;"
    code += "print(embedded.ensure(Path(sys.argv[1]), database=False, valkey=True).database_url == '')"
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, cwd=embedded.PROJECT_DIR, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"
    assert [entry.name for entry in tmp_path.iterdir()] == ["valkey"]
    wait_for_lock(tmp_path / "valkey" / "server.lock")


@pytest.mark.system
def test_a_server_that_cannot_start_is_reported_with_the_end_of_its_log(tmp_path: Path) -> None:
    data = tmp_path / "postgres" / "data"
    data.mkdir(parents=True, mode=0o700)
    (data / "PG_VERSION").write_text("9.6\n")
    (data / "postgresql.conf").touch()
    with pytest.raises(embedded.EmbeddedError, match=r"(?s)embedded postgres server does not run.*9\.6"):
        embedded.ensure(tmp_path, valkey=False)


def test_a_socket_folder_open_to_others_is_refused(tmp_path: Path) -> None:
    (tmp_path / "valkey" / "run").mkdir(parents=True)
    (tmp_path / "valkey" / "run").chmod(0o755)
    with pytest.raises(embedded.EmbeddedError, match="open to others"):
        embedded.ensure(tmp_path, database=False)


def test_a_data_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(embedded.EmbeddedError, match=r"cannot be used: .*Not a directory.* Set VAR_DIR"):
        embedded.ensure(tmp_path / "file")
