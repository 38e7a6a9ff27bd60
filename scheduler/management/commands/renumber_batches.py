"""After the database was restored: give new batches numbers that none had that was lost."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from scheduler.submission import batches


class Command(BaseCommand):
    help = (
        "Leave a gap of a million in the numbers of batches. The names of jobs begin with them, and computers may still"
        " have jobs of batches that a restored database does not know."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(f"The next batch has a number above {batches.leave_gap()}.")
