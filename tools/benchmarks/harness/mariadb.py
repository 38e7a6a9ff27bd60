"""A MariaDB server in its own folder, reached only by a socket: Debian's packages, without their service."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pymysql
from pymysql.constants import CLIENT

from portal.dev.parent_death import ends_with_parent

PROGRAM: Final = "/usr/sbin/mariadbd"
_INSTALLER: Final = "mariadb-install-db"
_START_SECS: Final = 60.0


def is_installed() -> bool:
    return os.access(PROGRAM, os.X_OK) and shutil.which(_INSTALLER) is not None


class MariaDB:
    """A running server."""

    def __init__(self, socket: Path) -> None:
        self.socket = socket
        self.pid = 0

    def connect(self, database: str | None = None) -> Any:
        return pymysql.connect(
            unix_socket=str(self.socket),
            user="root",
            database=database,
            autocommit=True,
            client_flag=CLIENT.MULTI_STATEMENTS,
        )

    def run(self, statements: str, database: str | None = None) -> None:
        """Carry out statements that end with semicolons."""
        with self.connect(database) as connection, connection.cursor() as cursor:
            cursor.execute(statements)
            while cursor.nextset():
                pass


@contextmanager
def server() -> Iterator[MariaDB]:
    """Start a server that ends with this process. Its folder's name is short because socket names must be."""
    with tempfile.TemporaryDirectory(prefix="mariadb-") as name:
        folder = Path(name)
        user = ["--user=root"] if os.geteuid() == 0 else []
        data = ["--no-defaults", f"--datadir={folder / 'data'}", *user]
        subprocess.run(
            [_INSTALLER, *data, "--auth-root-authentication-method=normal", "--skip-test-db"],
            check=True,
            capture_output=True,
        )
        mariadb = MariaDB(folder / "socket")
        command = [
            *(PROGRAM, *data, f"--socket={mariadb.socket}", "--skip-networking", "--skip-log-bin"),
            *(f"--pid-file={folder / 'pid'}", f"--log-error={folder / 'log'}"),
            *("--innodb-flush-log-at-trx-commit=0", "--sql-mode="),
        ]
        process = subprocess.Popen(ends_with_parent(command))
        try:
            _await(mariadb, process, folder / "log")
            mariadb.pid = process.pid
            yield mariadb
        finally:
            process.terminate()
            process.wait()


def _await(server: MariaDB, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait for the socket, which the server creates when it answers."""
    until = time.monotonic() + _START_SECS
    while not server.socket.exists():
        if process.poll() is not None or time.monotonic() > until:
            raise RuntimeError(f"MariaDB did not start: {log.read_text()[-1000:]}")
        time.sleep(0.05)
