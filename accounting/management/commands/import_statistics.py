"""Read the statistics exports of projects now."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounting.models import StatisticsImport
from accounting.statistics import run


class Command(BaseCommand):
    help = "Read projects' statistics exports now: of all projects that are read daily, or of those named."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("names", nargs="*", metavar="PROJECT", help="the project's name in the list of projects")

    def handle(self, *args: Any, names: list[str], **options: Any) -> None:
        imports = StatisticsImport.objects.filter(project__name__in=names) if names else run.daily_imports()
        numbers = {row.project.name: row.pk for row in imports.select_related("project")}
        if missing := set(names) - numbers.keys():
            raise CommandError(f"No statistics are imported from a project named {', '.join(sorted(missing))}.")
        for name, project_id in numbers.items():
            self.stdout.write(f"{name}: {run.import_project(project_id, at_once=True)}")
