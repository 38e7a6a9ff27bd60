"""The admin's sidebar: pages by what an operator wants to do, not by the package that has them.

Apps add pages that are no lists of a table in ``ready()``. A table that no group names comes last, under its app.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from django.conf import settings
from django.contrib import admin
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse


class Page(NamedTuple):
    """A page of a group; without a permission ("app.view_model") every operator sees it."""

    group: str
    title: str
    view: str
    permission: str = ""


OVERVIEW: Final = "Overview"
pages: Final[list[Page]] = [
    Page(OVERVIEW, "Dashboard", "admin:index"),
    Page(OVERVIEW, "Public status", "status"),
    Page(OVERVIEW, "Figures taken", "admin:portal_operatingfigure_changelist", "portal.view_operatingfigure"),
    Page(OVERVIEW, "Maintenance", "admin:portal_maintenancerun_changelist", "portal.view_maintenancerun"),
    Page(OVERVIEW, "Changes of settings", "admin:portal_change_changelist", "portal.view_change"),
]
_MODELS: Final = {
    "Jobs": (
        "credit.batch",
        "credit.workunit",
        "credit.result",
        "scheduler.retryentry",
        "scheduler.trickle",
        "scheduler.storedfile",
    ),
    "Apps and credit": (
        "credit.app",
        "credit.appversion",
        "credit.platform",
        "scheduler.planclass",
        "scheduler.appkeyword",
        "credit.hostappversion",
        "credit.preview",
        "credit.creditexperiment",
        "credit.statisticsexport",
        "credit.collectedexport",
        "scheduler.releasedraft",
        "scheduler.keychange",
    ),
    "Account manager": (
        "accounting.project",
        "accounting.projecttrouble",
        "accounting.tasksource",
        "accounting.projectstanding",
        "accounting.projectday",
        "accounting.settlement",
        "accounting.statisticsimport",
        "accounting.userproject",
        "accounting.accountsettings",
        "accounting.announcement",
        "accounting.badge",
        "portal.sitetext",
        "accounting.mailcampaign",
        "accounting.note",
        "accounting.hostclient",
    ),
    "People and computers": (
        "portal.account",
        "portal.supportaction",
        "portal.user",
        "portal.host",
        "portal.clientkey",
        "portal.apitoken",
        "portal.requestedwork",
    ),
}
_ROOMS: Final = {"credit": "project", "scheduler": "project", "accounting": "account_manager"}


def groups(request: HttpRequest) -> list[dict[str, Any]]:
    """The groups with what this operator may see, as unfold wants them."""
    found: dict[str, list[dict[str, Any]]] = {OVERVIEW: [], **{name: [] for name in _MODELS}}
    for page in pages:
        if not page.permission or request.user.has_perm(page.permission):
            _add(found, page.group, page.title, page.view)
    lists = _lists(request)
    for group, names in _MODELS.items():
        for name in names:
            if name in lists:
                _add(found, group, *lists.pop(name)[1:])
    for app, title, view in lists.values():
        _add(found, app, title, view)
    return [{"title": title, "collapsible": False, "items": items} for title, items in found.items() if items]


def _lists(request: HttpRequest) -> dict[str, tuple[str, str, str]]:
    """The tables that this operator may see: app, name and view of each list, by the model's name."""
    found = {}
    listed = {"portal.operatingfigure", "portal.change", "portal.maintenancerun"}
    for model, model_admin in admin.site._registry.items():
        meta = model._meta
        room = _ROOMS.get(meta.app_label)
        is_here = room is None or room in settings.ROOMS
        if is_here and meta.label_lower not in listed and model_admin.has_view_permission(request):
            title = str(meta.verbose_name_plural)
            view = f"admin:{meta.app_label}_{meta.model_name}_changelist"
            found[meta.label_lower] = (str(meta.app_config.verbose_name), title[:1].upper() + title[1:], view)
    return found


def _add(found: dict[str, list[dict[str, Any]]], group: str, title: str, view: str) -> None:
    try:
        found.setdefault(group, []).append({"title": title, "link": reverse(view)})
    except NoReverseMatch:
        # A page of a room that this site does not have.
        return
