"""A streaming replica of the tests' database server, with PostgreSQL's own programs."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from portal.clients.factory import psycopg_params
from portal.dev import embedded
from portal.dev.supervisor import unprivileged
from tests.support.guarded_program import GuardedProgram

_SERVER = ("host", "port", "user", "password")


class Replica(GuardedProgram):
    """Use it as a context manager. It follows the server, with all its databases, until it ends."""

    poll_secs = 0.1

    def __init__(self) -> None:
        # The path of a socket may have about 100 characters.
        self.folder = Path(tempfile.mkdtemp(prefix="replica-"))
        self._data = self.folder / "data"
        self.params: dict[str, Any] = {"host": str(self.folder), "port": 5432, "connect_timeout": 2}
        prefix = unprivileged([self.folder])
        programs = embedded.programs("postgres")
        options = ("listen_addresses=", "max_connections=200", "shared_buffers=32MB", "hot_standby_feedback=on")
        command = [*prefix, str(programs / "postgres"), "-D", str(self._data), "-k", str(self.folder), "-p", "5432"]
        command += [word for option in options for word in ("-c", option)]
        primary = {name: value for name, value in psycopg_params().items() if name in _SERVER}
        self.params["user"] = primary["user"]
        copy = [str(programs / "pg_basebackup"), "--pgdata", str(self._data), "--write-recovery-conf", "--no-sync"]
        copy += ["--checkpoint=fast", "--wal-method=stream", "--dbname", make_conninfo(**primary)]
        self._copy = [*prefix, *copy]
        super().__init__("the replica", command, self.folder / "log", os.environ, self.folder)

    def __enter__(self) -> Replica:
        # Other tests fill the log: while this session lives, the server keeps what the replica may still need.
        self._session = psycopg.connect(**psycopg_params(), autocommit=True)
        self._session.execute("SET idle_session_timeout = 0")
        self._session.execute("SELECT pg_create_physical_replication_slot(%s, true, true)", [f"kept_{os.getpid()}"])
        subprocess.run(self._copy, check=True, cwd=self.folder)
        super().__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        # Asked to end, it would wait for its sessions.
        self.kill()
        self._session.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def answers(self) -> bool:
        with suppress(psycopg.OperationalError):
            return bool(self.ask("SELECT pg_is_in_recovery()"))
        return False

    def ask(self, statement: str) -> Any:
        """The first value that it answers with."""
        with psycopg.connect(**self.params, dbname="postgres", autocommit=True) as session:
            row = session.execute(statement.encode()).fetchone()
        return None if row is None else row[0]
