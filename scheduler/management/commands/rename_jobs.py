"""After the database was restored: give jobs names that none had that was lost."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from scheduler.submission.generations import NAMES


class Command(BaseCommand):
    help = (
        "Give all jobs that are not sent yet new names, and new batches numbers far from those in use. Computers may"
        " still have jobs that a restored database does not know, or takes for not sent. finish_restore does this, too."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        for line in NAMES.run():
            self.stdout.write(line)
