"""`make bench`: measure, print a table, write var/bench.json."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

import psycopg
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from psycopg import sql

from tools.benchmarks.harness import report
from tools.benchmarks.harness.server import site_environment

DATABASE: Final = "cobblestone_bench"


class Command(BaseCommand):
    help = f"Measure the site in a database of its own ({DATABASE}, recreated) and write the figures to var/bench.json."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--only", choices=[*report.BENCHMARKS, *report.BY_NAME_ONLY], help="run this one only")
        parser.add_argument("--inside", action="store_true", help="measure in the present database: not for you")

    def handle(self, *args: Any, only: str | None, inside: bool, **options: Any) -> None:
        if inside:
            self._measure([only] if only else report.BENCHMARKS)
            return
        url = _make_database()
        # A separate process, whose settings and children all see the other database.
        command = [sys.executable, "manage.py", "bench", "--inside", *(["--only", only] if only else [])]
        # Its requests are logged by the thousand.
        log = settings.VAR_DIR / "bench.log"
        environment = site_environment() | {"DATABASE_URL": url}
        with log.open("wb") as file:
            ended = subprocess.run(command, cwd=settings.BASE_DIR, env=environment, stderr=file, check=False)
        if ended.returncode:
            raise CommandError(f"the measurement ended with code {ended.returncode}; see {log}")

    def _measure(self, names: Sequence[str]) -> None:
        if not str(settings.DATABASES["default"]["NAME"]).startswith(DATABASE):
            raise CommandError(f"--inside measures in the database {DATABASE} only")
        call_command("migrate", verbosity=0)
        call_command("collectstatic", interactive=False, verbosity=0)
        report.run(names, self.stdout.write)


def _make_database() -> str:
    """Recreate the database beside the site's own, on the same server; return its URL."""
    parts = urlsplit(settings.DATABASE_URL)
    name = sql.Identifier(DATABASE)
    with psycopg.connect(settings.DATABASE_URL, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(name))
        connection.execute(sql.SQL("CREATE DATABASE {}").format(name))
    return urlunsplit(parts._replace(path=f"/{DATABASE}"))
