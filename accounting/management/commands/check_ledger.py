"""Check the ledger's invariants: a line per difference, exit code 1 if there is one."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounting.ledger import check


class Command(BaseCommand):
    help = "Re-derive the ledger's totals from its days and report every difference; exit code 1 if there is one."

    def handle(self, *args: Any, **options: Any) -> None:
        differences = list(check.differences())
        for line in differences:
            self.stdout.write(line)
        if differences:
            raise CommandError(f"{len(differences)} differences", returncode=1)
        self.stdout.write("The ledger is consistent.")
