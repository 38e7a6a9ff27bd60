"""Bring a Science United site here: rehearse, import, and import what changed since."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandError

from extras.moving_in.management.commands import import_boinc
from extras.moving_in.models import ImportStep
from extras.moving_in.science_united import steps


class Command(import_boinc.Command):
    help = (
        "Import a Science United site from its MySQL or MariaDB database, and its signing key from its folder. "
        "Interrupted, it goes on where it was; after an import, it imports what changed since. It never writes to that "
        "database or folder."
    )
    source_name = steps.SOURCE
    steps = staticmethod(steps.steps)

    def handle(self, *args: Any, **options: Any) -> None:
        if ImportStep.objects.exclude(source=self.source_name).exists():
            raise CommandError(
                "Another site was imported here: numbers of people and computers can be those of one only."
            )
        super().handle(*args, **options)
