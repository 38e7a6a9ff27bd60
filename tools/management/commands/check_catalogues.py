"""Check that all texts of the site are translated, and that no translation would break a page."""

from __future__ import annotations

from django.conf import settings
from django.core.management.base import CommandError

from portal.languages.sources import Catalogue
from tools.catalogues.command import CatalogueCommand
from tools.catalogues.problems import problems


class Command(CatalogueCommand):
    help = "Say what is missing or wrong in the catalogues (.po) of the apps."

    def work(self, chosen: list[Catalogue]) -> None:
        sentences = problems(settings.BASE_DIR, chosen, settings.TRANSLATIONS)
        for sentence in sentences:
            self.stdout.write(sentence)
        if sentences:
            raise CommandError(f"{len(sentences)} problems.")
