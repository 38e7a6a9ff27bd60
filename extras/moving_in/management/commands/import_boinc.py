"""Bring a BOINC project here: rehearse, import, and import what changed since."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pymysql
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from credit.models import App
from extras.moving_in.boinc import steps
from extras.moving_in.machinery import report, run
from extras.moving_in.machinery.steps import Context
from extras.moving_in.models import ImportStep
from extras.moving_in.source import Source


class Command(BaseCommand):
    source_name = steps.SOURCE
    brings_apps = True
    steps = staticmethod(steps.steps)
    help = (
        "Import a BOINC project from its MySQL or MariaDB database and its folder. Interrupted, it goes on where it "
        "was; after an import, it imports what changed since. It never writes to that database or folder."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("database")
        parser.add_argument(
            "--defaults-file", type=Path, help="file with host, user, password or socket, as MySQL's clients read it"
        )
        parser.add_argument("--project-folder", type=Path, help="the project's folder, or a copy of it")
        parser.add_argument("--rehearse", action="store_true", help="read and translate all, and write nothing")
        parser.add_argument("--last", action="store_true", help="refuse imports after this one: the site opens")
        parser.add_argument("--reopen", action="store_true", help="allow imports after the last one again")

    def source(self, database: str, options: dict[str, Any]) -> Source:
        try:
            return Source(database, options["defaults_file"])
        except pymysql.Error as error:
            raise CommandError(f"The database cannot be read: {error}") from error

    def handle(self, *args: Any, database: str, **options: Any) -> None:
        begun = set(ImportStep.objects.values_list("source", flat=True))
        if begun - {self.source_name}:
            raise CommandError(
                "Another site was imported here, and the numbers of people and computers can come from one site only."
            )
        if self.brings_apps and not begun and App.objects.exists():
            raise CommandError(
                "This site has apps of its own, and the numbers of apps, versions and jobs can come from one project "
                "only. Import into a site that has none."
            )
        source = self.source(database, options)
        context = Context(source, timezone.now(), options["project_folder"], writes=not options["rehearse"])
        try:
            if options["rehearse"]:
                tallies = run.rehearse(self.steps(), context, self.stderr.write)
            else:
                if options["reopen"]:
                    run.reopen(self.source_name)
                tallies = run.carry_out(
                    self.source_name, self.steps(), context, self.stderr.write, is_last=options["last"]
                )
        except run.ImportRunning:
            raise CommandError("Another import is running. Wait for its end.") from None
        except run.ImportClosed:
            raise CommandError(
                "The last import was declared to be the last (--last): another one would overwrite what people changed "
                "here since. If nobody has used the site yet, add --reopen."
            ) from None
        except pymysql.Error as error:
            raise CommandError(
                f"The database failed: {error}. Nothing is lost: run the same command again and it goes on."
            ) from error
        finally:
            source.close()
        for line in report.lines(tallies, is_rehearsal=options["rehearse"]):
            self.stdout.write(line)
