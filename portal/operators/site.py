"""The admin's site: django-unfold's, with a search in the operator's language."""

from __future__ import annotations

import time
from typing import Any, Final

from django.contrib import admin
from django.contrib.admin import sites
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from unfold.apps import BasicAppConfig
from unfold.sites import UnfoldAdminSite

MOST_FOUND: Final = 100
"""More than there are tables."""


class Site(UnfoldAdminSite):
    """Unfold keeps what its search found for five minutes, also for who has chosen another language meanwhile."""

    def search(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """The tables whose names have the term and that one may look at; in the menu, or (``extended``) by Ctrl-K."""
        began = time.monotonic()
        term = request.GET.get("s", "").lower()
        if not term:
            return HttpResponse()
        found = [each for each in self._search_apps(self.get_app_list(request), term) if each.link]
        pages = Paginator(found, MOST_FOUND)
        name = "command_results" if "extended" in request.GET else "search_results"
        return TemplateResponse(
            request,
            f"unfold/helpers/{name}.html",
            {
                "page_obj": pages,
                "results": pages.page(1),
                "page_counter": 0,
                "execution_time": time.monotonic() - began,
            },
            headers={"HX-Trigger": "search"},
        )


class SiteConfig(BasicAppConfig):
    """In place of unfold's own, which registers its own site."""

    default = False

    def ready(self) -> None:
        admin.site = sites.site = Site()
