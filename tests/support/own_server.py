"""A PostgreSQL server of a test's own, which may be killed and whose data may be restored."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
from django.db import connection
from psycopg.conninfo import make_conninfo

from portal.databases.params import psycopg_params
from portal.dev import embedded
from portal.dev.supervisor import unprivileged
from tests.support.guarded_program import GuardedProgram

PROGRAMS = embedded.programs("postgres")


class OwnServer(GuardedProgram):
    """Use it as a context manager. Its data folder is `data`; without one, new data are made."""

    poll_secs = 0.1

    def __init__(self) -> None:
        # The path of a socket may have about 100 characters.
        self.folder = Path(tempfile.mkdtemp(prefix="server-"))
        self.data = self.folder / "data"
        self.user = str(psycopg_params()["user"])
        self._prefix = unprivileged([self.folder])
        options = ("listen_addresses=", "shared_buffers=32MB", "timezone=UTC")
        command = [
            *self._prefix,
            str(PROGRAMS / "postgres"),
            "-D",
            str(self.data),
            "-k",
            str(self.folder),
            "-p",
            "5432",
        ]
        command += [word for option in options for word in ("-c", option)]
        variables = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        super().__init__("the server", command, self.folder / "log", variables, self.folder)

    def start(self) -> None:
        if not self.data.exists():
            self._initdb()
        super().start()

    def _initdb(self) -> None:
        # With files of the WAL so small that a test fills many.
        command = [*self._prefix, str(PROGRAMS / "initdb"), "-D", str(self.data), "-U", self.user, "--auth=trust"]
        command += ["--encoding=UTF8", "--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C.UTF-8"]
        subprocess.run([*command, "--wal-segsize=1", "--no-sync"], check=True, stdout=subprocess.DEVNULL)

    def copy_database(self, name: str) -> None:
        """A copy of the test's database, as it is now."""
        self.ask(f'CREATE DATABASE "{name}"')
        dump = self.folder / "dump"
        keys = ("host", "port", "user", "password")
        of_tests = {key: value for key, value in psycopg_params().items() if key in keys}
        source = make_conninfo(**of_tests, dbname=str(connection.settings_dict["NAME"]))
        subprocess.run([PROGRAMS / "pg_dump", "-Fc", "-Z0", "-f", dump, "-d", source], check=True)
        target = make_conninfo(**{**self.params, "dbname": name})
        subprocess.run([PROGRAMS / "pg_restore", "--exit-on-error", "-1", "-d", target, dump], check=True)

    def __exit__(self, *raised: object) -> None:
        # Asked to end, it would wait for its sessions.
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def params(self) -> dict[str, Any]:
        return {"host": str(self.folder), "port": 5432, "user": self.user, "connect_timeout": 2}

    def answers(self) -> bool:
        """Whether it takes writes: a recovery is over."""
        with suppress(psycopg.OperationalError):
            return self.ask("SELECT pg_is_in_recovery()") is False
        return False

    def ask(self, statement: str, database: str = "postgres") -> Any:
        """The first value that it answers with."""
        with psycopg.connect(**self.params, dbname=database, autocommit=True) as session:
            cursor = session.execute(statement.encode())
            row = cursor.fetchone() if cursor.description else None
        return None if row is None else row[0]
