"""After a restore of the database: give jobs names that no lost job had."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from scheduler.submission.generations import NAMES


class Command(BaseCommand):
    help = (
        "Give all unsent jobs new names, and new batches numbers far from those in use. Computers may still have"
        " jobs that a restored database does not know, or believes to be unsent. finish_restore does this, too."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        for line in NAMES.run():
            self.stdout.write(line)
