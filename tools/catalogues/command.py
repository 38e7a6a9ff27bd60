"""The shared part of the commands on catalogues: choosing apps, and reporting invalid files."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from portal.languages.sources import APPS, Catalogue, places
from tools.catalogues.catalogues import CatalogueError


class CatalogueCommand(BaseCommand):
    """A command on the catalogues of some apps, or of all. It needs no server."""

    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("apps", nargs="*", help=f"of these apps alone: {', '.join(APPS)}")

    def handle(self, *args: Any, apps: list[str], **options: Any) -> None:
        if unknown := set(apps) - set(APPS):
            raise CommandError(f"There is no app {', '.join(sorted(unknown))}.")
        try:
            self.work(places(tuple(apps) or APPS))
        except CatalogueError as error:
            raise CommandError(str(error)) from error

    @abstractmethod
    def work(self, chosen: list[Catalogue]) -> None:
        """Do the command's work on these catalogues. Raises CatalogueError, CommandError."""
