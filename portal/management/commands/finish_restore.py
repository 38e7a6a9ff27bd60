"""Finish a restore of the database: run all checks, and report what is there."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from portal.maintenance import restores


class Command(BaseCommand):
    help = (
        "Run this after restoring the database, before the site starts: it makes names and numbers of new data distinct"
        " from those of lost data, runs all checks, names the last commit, and counts what was checked. Exit code 1 if"
        " a check finds a difference."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        for line in restores.prepare():
            self.stdout.write(line)
        count = 0
        for line in restores.differences():
            # At once, as reading all files may take hours.
            self.stdout.write(line)
            count += 1
        if count:
            raise CommandError(f"{restores.summary()}: {count} differences", returncode=1)
        self.stdout.write(f"{restores.summary()}: checks clean.")
