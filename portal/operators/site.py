"""The admin's site: django-unfold's, whose search keeps what it found where only JSON can be kept."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.admin import sites
from unfold.apps import BasicAppConfig
from unfold.sites import UnfoldAdminSite


class Site(UnfoldAdminSite):
    """Unfold keeps its results in Django's cache, which takes no objects (portal/ops/cache.py)."""

    def _search_apps(self, app_list: list[dict[str, Any]], search_term: str) -> list[dict[str, str]]:
        """The tables whose names have the term and that one may look at, as the template shows them."""
        found = super()._search_apps(app_list, search_term)
        return [
            {name: str(getattr(each, name)) for name in ("title", "description", "link")} for each in found if each.link
        ]


class SiteConfig(BasicAppConfig):
    """In place of unfold's own, which registers its own site."""

    default = False

    def ready(self) -> None:
        admin.site = sites.site = Site()
