"""`make bench`: measure, print a table, write var/bench.json."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import import_module
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

import psycopg
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from psycopg import sql

DATABASE: Final = "cobblestone_bench"
# Name -> the module whose measure() returns that part of the report.
BENCHMARKS: Final = {
    "am_rpc": "accounting.benchmarks.am_rpc",
    "history": "accounting.benchmarks.history",
    "validator": "credit.benchmarks.validator",
    "scheduler_rpc": "scheduler.benchmarks.scheduler_rpc",
    "preview": "credit.benchmarks.preview",
    "emulator": "emulator.benchmarks.speed",
    "pages": "accounting.benchmarks.pages",
}
# Only by their names: they take long.
BY_NAME_ONLY: Final = {
    "large_site": "accounting.benchmarks.large_site",
    "soak": "accounting.benchmarks.soak",
    "export": "credit.benchmarks.export",
    "import": "accounting.benchmarks.statistics",
    "dashboard": "credit.benchmarks.dashboard",
    "emulator_growth": "emulator.benchmarks.growth",
}


class Command(BaseCommand):
    help = f"Measure the site in a database of its own ({DATABASE}, made anew) and write the figures to var/bench.json."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--only", choices=[*BENCHMARKS, *BY_NAME_ONLY], help="run this one only")
        parser.add_argument("--inside", action="store_true", help="measure in the present database: not for you")

    def handle(self, *args: Any, only: str | None, inside: bool, **options: Any) -> None:
        if inside:
            self._measure([only] if only else list(BENCHMARKS))
            return
        url = _make_database()
        # A process of its own, whose settings and whose children all see the other database.
        command = [sys.executable, "manage.py", "bench", "--inside", *(["--only", only] if only else [])]
        environment = {
            **os.environ,
            "DATABASE_URL": url,
            "CACHE_URL": settings.CACHE_URL,
            "BROKER_URL": settings.BROKER_URL,
        }
        # Its requests are logged by the thousand.
        log = settings.VAR_DIR / "bench.log"
        with log.open("wb") as file:
            ended = subprocess.run(command, cwd=settings.BASE_DIR, env=environment, stderr=file, check=False)
        if ended.returncode:
            raise CommandError(f"the measurement ended with code {ended.returncode}; see {log}")

    def _measure(self, names: list[str]) -> None:
        if not str(settings.DATABASES["default"]["NAME"]).startswith(DATABASE):
            raise CommandError(f"--inside measures in the database {DATABASE} only")
        call_command("migrate", verbosity=0)
        call_command("collectstatic", interactive=False, verbosity=0)
        path = settings.VAR_DIR / "bench.json"
        report = json.loads(path.read_text()) if path.exists() else {}
        for name in names:
            report[name] = import_module((BENCHMARKS | BY_NAME_ONLY)[name]).measure()
            self._show(name, report[name])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(report, indent=1) + "\n")

    def _show(self, name: str, figures: dict[str, Any]) -> None:
        self.stdout.write(f"\n{name}")
        for key, value in figures.items():
            row = "  ".join(f"{k} {v}" for k, v in value.items()) if isinstance(value, dict) else value
            self.stdout.write(f"  {key:<16} {row}")


def _make_database() -> str:
    """Make the database anew beside the site's own, on the same server; return its URL."""
    parts = urlsplit(settings.DATABASE_URL)
    name = sql.Identifier(DATABASE)
    with psycopg.connect(settings.DATABASE_URL, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(name))
        connection.execute(sql.SQL("CREATE DATABASE {}").format(name))
    return urlunsplit(parts._replace(path=f"/{DATABASE}"))
