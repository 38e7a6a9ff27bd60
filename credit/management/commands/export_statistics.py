"""Make a statistics export now."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from credit.export import run


class Command(BaseCommand):
    help = "Export the project's statistics now, as the task does every day, and publish them."

    def handle(self, *args: Any, **options: Any) -> None:
        made = run.export()
        if made is None:
            raise CommandError("Another export is running.")
        self.stdout.write(
            f"{made.nusers} volunteers, {made.nteams} teams and {made.nhosts} computers, {made.nbytes} bytes."
        )
