"""Check validated credit's invariants: a line per difference, exit code 1 if there is one."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from credit.statistics import check


class Command(BaseCommand):
    help = (
        "Derive the totals of volunteers and computers, the canonical results and all stored claims again, and report"
        " every difference; exit code 1 if there is one."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        differences = check.differences()
        for line in differences:
            self.stdout.write(line)
        if differences:
            raise CommandError(f"{len(differences)} differences", returncode=1)
        self.stdout.write("Validated credit is consistent.")
