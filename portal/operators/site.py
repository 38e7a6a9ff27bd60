"""The admin's site: django-unfold's, with a search in the operator's language."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from django.apps import AppConfig
from django.contrib import admin
from django.contrib.admin import sites
from django.contrib.admin.apps import SimpleAdminConfig
from django.contrib.admin.checks import check_admin_app, check_dependencies
from django.core import checks
from django.core.paginator import Paginator
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from unfold.apps import BasicAppConfig
from unfold.sites import UnfoldAdminSite

MOST_OF_A_KIND: Final = 5
MOST_FOUND: Final = 120
"""More than the number of tables, plus the things of each kind."""
MIN_TERM_CHARS: Final = 3
SEARCHED: Final = frozenset({"portal.user", "portal.host", "credit.batch", "credit.app"})


class Hit(NamedTuple):
    """A line of the search results."""

    title: str
    description: str
    link: str
    icon: str = ""


class Site(UnfoldAdminSite):
    """Unfold's site, whose search caches results for five minutes, even if the reader changes the language; ours does
    not.
    """

    def search(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Find people and things by a term, and tables by name; for the menu, or (``extended``) for Ctrl-K.

        It finds only what the user may see.
        """
        began = time.monotonic()
        term = request.GET.get("s", "").lower()
        if not term:
            return HttpResponse()
        things = self._things(request, term) if len(term) >= MIN_TERM_CHARS else []
        results = things + [app for app in self._search_apps(self.get_app_list(request), term) if app.link]
        pages = Paginator(results, MOST_FOUND)
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

    def _things(self, request: HttpRequest, term: str) -> list[Hit]:
        """Find people, computers, batches and apps that the user may see, by the search of their own lists.

        A statement or two for each of the four.
        """
        hits = []
        for model, model_admin in self._registry.items():
            meta = model._meta
            if meta.label_lower not in SEARCHED or not model_admin.has_view_permission(request):
                continue
            rows, _ = model_admin.get_search_results(request, model_admin.get_queryset(request), term)
            address = f"{self.name}:{meta.app_label}_{meta.model_name}_change"
            hits += [
                Hit(_title(row), str(meta.verbose_name), reverse(address, args=[row.pk]))
                for row in rows.order_by("pk")[:MOST_OF_A_KIND]
            ]
        return hits


def _title(row: Model) -> str:
    """A row's name, with a person's display name, which is searched too. (The site is created before the models.)"""
    name = getattr(row, "name", "")
    return f"{row} ({name})" if name and name not in str(row) else str(row)


class SiteConfig(BasicAppConfig):
    """Replaces unfold's own configuration, which registers its own site."""

    default = False

    def ready(self) -> None:
        admin.site = sites.site = Site()


class AdminConfig(SimpleAdminConfig):
    """Leaves importing what the apps register to `portal.urls` and the admin's check.

    That is half of what Django loads, and workers, beat and commands do not need it.
    """

    default = False

    def ready(self) -> None:
        checks.register(check_dependencies, checks.Tags.admin)
        checks.register(_check_admin, checks.Tags.admin)


def _check_admin(app_configs: Sequence[AppConfig] | None, **options: Any) -> list[checks.CheckMessage]:
    admin.autodiscover()
    return check_admin_app(app_configs, **options)
