"""Check that all texts of the site are translated, and that no translation would break a page."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from portal.languages.catalogues import CatalogueError
from portal.languages.problems import problems
from portal.languages.sources import APPS, places


class Command(BaseCommand):
    help = "Say what is missing or wrong in the catalogues (.po) of the apps."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("apps", nargs="*", help=f"of these apps alone: {', '.join(APPS)}")

    def handle(self, *args: Any, apps: list[str], **options: Any) -> None:
        if unknown := set(apps) - set(APPS):
            raise CommandError(f"There is no app {', '.join(sorted(unknown))}.")
        try:
            found = problems(settings.BASE_DIR, places(tuple(apps) or APPS), settings.TRANSLATIONS)
        except CatalogueError as error:
            raise CommandError(str(error)) from error
        for each in found:
            self.stdout.write(each)
        if found:
            raise CommandError(f"{len(found)} problems.")
