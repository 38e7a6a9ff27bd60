"""Bring the catalogues up to date with the texts of the site."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from portal.languages.catalogues import CatalogueError, update
from portal.languages.sources import APPS, places


class Command(BaseCommand):
    help = "Read all marked texts, and write them to the catalogues (.po) of the apps; translations are kept."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("apps", nargs="*", help=f"of these apps alone: {', '.join(APPS)}")

    def handle(self, *args: Any, apps: list[str], **options: Any) -> None:
        if unknown := set(apps) - set(APPS):
            raise CommandError(f"There is no app {', '.join(sorted(unknown))}.")
        try:
            changed = update(settings.BASE_DIR, places(tuple(apps) or APPS), settings.TRANSLATIONS)
        except CatalogueError as error:
            raise CommandError(str(error)) from error
        for path in changed:
            self.stdout.write(f"{path.relative_to(settings.BASE_DIR)} changed")
