"""The database of a BOINC project, as tests fill it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from extras.moving_in.source import Source
from tools.benchmarks.harness.mariadb import MariaDB

SCHEMA: Final = (Path(__file__).parent / "schema.sql").read_text()
T0: Final = 1_700_000_000
"""14 November 2023: most rows of tests are made at about this time."""


@dataclass
class OldProject:
    """A database; rows are added by name, texts in bytes as they are stored."""

    server: MariaDB
    name: str
    connection: Any

    @classmethod
    def create(cls, server: MariaDB, name: str) -> Self:
        server.run(f"CREATE DATABASE {name}")
        server.run(SCHEMA, name)
        connection = server.connect(name)
        with connection.cursor() as cursor:
            cursor.execute("SET NAMES binary")
        return cls(server, name, connection)

    def add(self, table: str, **values: Any) -> int:
        """A row; its number."""
        if table in ("user", "team", "host", "app", "workunit", "result", "app_version", "platform"):
            values.setdefault("create_time", T0)
        columns, places = ", ".join(f"`{name}`" for name in values), ", ".join(["%s"] * len(values))
        with self.connection.cursor() as cursor:
            cursor.execute(f"INSERT INTO `{table}` ({columns}) VALUES ({places})", list(values.values()))
            return int(cursor.lastrowid)

    def user(self, number: int, **values: Any) -> int:
        """A volunteer with the usual values: user7@example.org, whose key is 07…"""
        usual = {
            "id": number,
            "email_addr": f"user{number}@example.org",
            "name": f"Volunteer {number}",
            "authenticator": f"{number:032x}",
            "cross_project_id": f"c{number:031x}",
        }
        return self.add("user", **(usual | values))

    def run(self, statements: str) -> None:
        self.server.run(statements, self.name)

    def source(self) -> Source:
        return Source(self.name, unix_socket=str(self.server.socket), user="root")

    def close(self) -> None:
        self.connection.close()
