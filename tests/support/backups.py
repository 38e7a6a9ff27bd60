"""Backups by the script of deploy/, of a server of a test's own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.support.guarded_program import GuardedProgram
from tests.support.own_server import PROGRAMS, OwnServer
from tests.support.site_process import CHECKOUT
from tests.support.wait import wait_until

SCRIPT = CHECKOUT / "deploy" / "cobblestone-backup"


class Backups:
    """The script, for one folder, and one server if backups are made."""

    def __init__(self, folder: Path, server: OwnServer | None = None, **settings: str) -> None:
        self.folder = folder
        self.folder.mkdir(exist_ok=True)
        variables = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
        self._environment = (
            variables | {"BACKUP_DIR": str(folder), "PATH": f"{PROGRAMS}:{os.environ['PATH']}"} | settings
        )
        if server is not None:
            self._environment |= {"PGHOST": str(server.folder), "PGPORT": "5432", "PGUSER": server.user}

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [SCRIPT, *words], env=self._environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def run(self, *words: str) -> str:
        return succeed(self.start(*words))

    def refuse(self, *words: str) -> tuple[int, str]:
        process = self.start(*words)
        _, complaint = process.communicate()
        assert process.returncode != 0
        return process.returncode, complaint

    def receiving(self) -> GuardedProgram:
        return GuardedProgram("wal", [str(SCRIPT), "wal"], self.folder / "log", self._environment, self.folder)

    def bases(self) -> list[str]:
        return sorted(path.name for path in (self.folder / "base").iterdir())

    def wal(self) -> list[str]:
        return sorted(path.name for path in (self.folder / "wal").iterdir())

    def wait_for_wal(self, server: OwnServer) -> None:
        """Until all that the server has written has been received."""
        wait_until(
            lambda: server.ask("SELECT flush_lsn >= pg_current_wal_flush_lsn() FROM pg_stat_replication"),
            "the last of the WAL to be received",
            30,
        )


def succeed(process: subprocess.Popen[str]) -> str:
    said, complaint = process.communicate()
    assert process.returncode == 0, said + complaint
    return said
