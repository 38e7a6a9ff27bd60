"""A backup is restored as docs/how-to/deploy.md says, into a new database and over an installed one."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from django.db import connection
from pytest_django import Settings

from portal.databases.params import psycopg_params
from portal.dev import embedded
from portal.models import Host, User
from scheduler.submission.submit import submit
from tests.support.credit_factories import NOON, make_app
from tests.support.finished_jobs import DEFAULTS
from tests.support.site_process import CHECKOUT, database_url, environment

pytestmark = pytest.mark.django_db(transaction=True)


def documented() -> list[str]:
    """The commands of the section, but for those of systemd."""
    text = (CHECKOUT / "docs" / "how-to" / "deploy.md").read_text()
    match = re.search(r"^### Restore$.*?^```$(.*?)^```$", text, re.M | re.S)
    assert match
    return [line.partition(" #")[0] for line in match[1].strip().splitlines() if not line.startswith("systemctl ")]


class Installation:
    """A database of its own, for the site of the tests' files and keys."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self._folder = folder
        self.params = psycopg_params()
        url = urlunsplit(urlsplit(database_url())._replace(path=f"/{name}"))
        programs = f"{embedded.programs('postgres')}{os.pathsep}{os.environ['PATH']}"
        names = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "password": "PGPASSWORD"}
        server = {names[key]: str(value) for key, value in self.params.items() if key in names}
        self.environment: Mapping[str, str] = environment(folder, DATABASE_URL=url, PATH=programs, **server)

    def run(self, command: list[str]) -> str:
        done = subprocess.run(
            command, cwd=self._folder, env=self.environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def restore(self) -> str:
        """What the documented commands say."""
        said = ""
        for line in documented():
            words = shlex.split(re.sub(r"^sudo -u (postgres|cobblestone) ", "", line))
            if words[0] == "$manage":
                words = [sys.executable, "-W", "ignore", str(CHECKOUT / "manage.py"), *words[1:]]
            elif words[0] == "createdb":
                assert words[1:] == ["--owner", "cobblestone", "cobblestone"]
                words = ["createdb", "--owner", str(self.params["user"]), self.name]
            else:
                words = [self.name if word == "cobblestone" else word for word in words]
            said += self.run(words)
        return said

    def ask(self, statement: str) -> list[tuple[object, ...]]:
        with psycopg.connect(**{**self.params, "dbname": self.name}) as session:
            cursor = session.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []


@pytest.fixture
def restored(settings: Settings, tmp_path: Path) -> Iterator[Installation]:
    settings.MEDIA_ROOT = tmp_path / "files"
    made = Installation(f"restored_{connection.settings_dict['NAME']}", tmp_path)
    yield made
    made.run(["dropdb", "--if-exists", made.name])


def test_a_backup_is_restored_into_a_new_database_and_over_an_installed_one(
    restored: Installation, alice: User, studio: Host, tmp_path: Path
) -> None:
    last = submit(make_app(), DEFAULTS, [{}], owner=alice, now=NOON)[0].pk
    restored.run(["pg_dump", "-Fc", "-f", "cobblestone.dump", str(connection.settings_dict["NAME"])])
    for _ in range(2):
        said = restored.restore()
        assert said.endswith("0 rows of the ledger, 2 results, 1 files: checks clean.\n")
        assert restored.ask("SELECT email FROM portal_user") == [("alice@example.org",)]
        assert restored.ask("SELECT max(id) FROM credit_batch") == [(last,)]
        ((number,),) = restored.ask("SELECT nextval(pg_get_serial_sequence('credit_batch', 'id'))")
        assert isinstance(number, int) and number > last + 1_000_000
        # What came later, in the database that the second backup replaces.
        restored.ask("UPDATE portal_user SET email = 'mallory@example.org'")
