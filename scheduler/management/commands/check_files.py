"""Check that the storage has every file that it should have: a line per difference, exit code 1 if there is one."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from scheduler.files import check


class Command(BaseCommand):
    help = (
        "Read every program, input, upload and kept output, compare it with its size and MD5, and report every"
        " difference; exit code 1 if there is one."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        count = 0
        for line in check.differences():
            # At once: reading all files may take hours.
            self.stdout.write(line)
            count += 1
        if count:
            raise CommandError(f"{count} differences", returncode=1)
        self.stdout.write("All files are there.")
