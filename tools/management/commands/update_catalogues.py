"""Bring the catalogues up to date with the texts of the site."""

from __future__ import annotations

from django.conf import settings

from portal.languages.sources import Catalogue
from tools.catalogues.catalogues import update
from tools.catalogues.command import CatalogueCommand


class Command(CatalogueCommand):
    help = "Read all marked texts, and write them to the catalogues (.po) of the apps; translations are kept."

    def work(self, chosen: list[Catalogue]) -> None:
        for path in update(settings.BASE_DIR, chosen, settings.TRANSLATIONS):
            self.stdout.write(f"{path.relative_to(settings.BASE_DIR)} changed")
