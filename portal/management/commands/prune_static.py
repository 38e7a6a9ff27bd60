"""Remove static files of former versions."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from portal.upgrades import old_static_files


class Command(BaseCommand):
    help = (
        "Remove static files of this machine that the present version does not name, and that an earlier run has missed"
        " so many days ago. Run it after collectstatic, and not at the same time."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--days", type=int, default=14, help="how long they are kept; 14 by default")

    def handle(self, *args: Any, days: int, **options: Any) -> None:
        if not 0 <= days <= 3650:
            raise CommandError("--days: give a number from 0 to 3650.")
        root, notes = Path(settings.STATIC_ROOT), Path(settings.VAR_DIR) / "static-missed.json"
        try:
            removed = old_static_files.prune(root, notes, timezone.now(), dt.timedelta(days=days))
        except old_static_files.NoManifest as error:
            raise CommandError(str(error)) from error
        except OSError as error:
            raise CommandError(f"{error}. What is left is removed by the next run.", returncode=1) from error
        self.stdout.write(f"{len(removed)} files removed.")
