"""Bring people and computers of any account manager here, from lists that its operators write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from extras.moving_in.management.commands import import_science_united
from extras.moving_in.science_united import host_list, steps
from extras.moving_in.source import Source


class Command(import_science_united.Command):
    help = (
        "Import people, computers, projects, totals and days from a folder of CSV files (docs/reference/host-list.md). "
        "Interrupted, it goes on where it was; after an import, it imports what changed since."
    )
    source_name = "host list"
    steps = staticmethod(steps.steps_of_lists)

    def source(self, database: str, options: dict[str, Any]) -> Source:
        folder = Path(database)
        if not (folder / "people.csv").exists():
            raise CommandError(f"There is no people.csv in {folder}: name the folder of the lists.")
        try:
            return host_list.ListSource(folder)
        except (OSError, host_list.ListError) as error:
            raise CommandError(f"The lists cannot be read: {error}") from error
