"""Say, before `migrate`, whether this version can be brought in while the old one runs."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from portal.upgrades import installation
from portal.upgrades.waiting import Waiting, invalid_indexes, is_empty, unknown, waiting


class Command(BaseCommand):
    help = (
        "With the new version's code and before its `migrate`: list the migrations that wait, whether the version that"
        " is running survives each, and what this machine lacks. Exit code 1 if the site has to be stopped, if"
        " something is missing, or if an index is invalid. Changes nothing in the database."
    )
    # It runs them itself, so that it can also report those that fail.
    requires_system_checks = []

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(installation.versions())
        missing = [*installation.version_problems()]
        missing += installation.package_problems(settings.BASE_DIR / "requirements.txt")
        problems, notes = installation.setting_messages()
        for line in notes:
            self.stdout.write(f"Note: {line}.")
        for line in missing + problems:
            self.stdout.write(f"Missing: {line}.")
        newer = unknown()
        for name in newer:
            self.stdout.write(f"{name} was applied, and this version does not have it.")
        invalid = invalid_indexes()
        for index, table in invalid:
            self.stdout.write(f"The index {index} of {table} is invalid: what made it was interrupted.")
        nstops = self._migrations()
        if missing or problems:
            raise CommandError(f"{len(missing + problems)} things are missing.", returncode=1)
        if newer:
            raise CommandError("The database is of a newer version than this code: install that version.", returncode=1)
        if invalid:
            raise CommandError("Invalid indexes are to be removed first: docs/how-to/upgrades.md.", returncode=1)
        if nstops:
            raise CommandError("A stop is needed: end all services of the old version before `migrate`.", returncode=1)
        self.stdout.write("No stop is needed: `migrate` may run while the old version serves.")

    def _migrations(self) -> int:
        """Write what waits; return how many reasons for a stop there are."""
        if is_empty():
            self.stdout.write("The database is empty: there is no older version.")
            return 0
        found = waiting()
        self.stdout.write(f"{len(found)} migrations wait." if found else "No migration waits.")
        for each in found:
            self._write(each)
        return sum(len(each.stops) for each in found)

    def _write(self, each: Waiting) -> None:
        self.stdout.write(f"  {each.name}: {'a stop is needed' if each.stops else 'the old version survives it'}")
        for line in each.stops:
            self.stdout.write(f"    Stop: {line}.")
        for line in each.notes:
            self.stdout.write(f"    Note: {line}.")
