"""Finish a restore of the database: all checks, and what is there now."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from portal.maintenance import restores


class Command(BaseCommand):
    help = (
        "Run it after the database was restored, before the site starts: it gives new data names and numbers that no"
        " lost data had, does all checks, names the last commit, and counts what was checked. Exit code 1 if a check"
        " finds a difference."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        for line in restores.prepare():
            self.stdout.write(line)
        count = 0
        for line in restores.differences():
            # At once: reading all files may take hours.
            self.stdout.write(line)
            count += 1
        if count:
            raise CommandError(f"{restores.summary()}: {count} differences", returncode=1)
        self.stdout.write(f"{restores.summary()}: checks clean.")
