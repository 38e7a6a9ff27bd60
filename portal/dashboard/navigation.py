"""The admin's sidebar: pages by what an operator wants to do, not by the package that has them.

Apps say which pages they have that are no lists of a table (`portal.extras`). A table that no group names comes
last in the group of its app's room, or under its app.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.contrib import admin
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext_lazy as _

from portal.extras import SiteApp, apps_in_use

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


class AdminPage(NamedTuple):
    """A page of a group; without a permission ("app.view_model") every operator sees it."""

    group: StrOrPromise
    title: StrOrPromise
    view: str
    permission: str = ""


OVERVIEW: Final = _("Overview")
_PAGES: Final = (
    AdminPage(OVERVIEW, _("Dashboard"), "admin:index"),
    AdminPage(OVERVIEW, _("Public status"), "status"),
    AdminPage(OVERVIEW, _("Figures taken"), "admin:portal_operatingfigure_changelist", "portal.view_operatingfigure"),
    AdminPage(OVERVIEW, _("Maintenance"), "admin:portal_maintenancerun_changelist", "portal.view_maintenancerun"),
    AdminPage(OVERVIEW, _("Changes of settings"), "admin:portal_change_changelist", "portal.view_change"),
    AdminPage(
        OVERVIEW,
        _("Steps to confirm"),
        "admin:portal_confirmationrequest_changelist",
        "portal.view_confirmationrequest",
    ),
    AdminPage(OVERVIEW, _("Signed log"), "admin:portal_signedentry_changelist", "portal.view_signedentry"),
)
_MODELS: Final[dict[StrOrPromise, tuple[str, ...]]] = {
    _("Jobs"): (
        "credit.batch",
        "credit.workunit",
        "credit.result",
        "scheduler.retryentry",
        "scheduler.trickle",
        "scheduler.storedfile",
    ),
    _("Apps and credit"): (
        "credit.app",
        "credit.appversion",
        "credit.platform",
        "scheduler.planclass",
        "scheduler.appkeyword",
        "credit.hostappversion",
        "credit.confirmingpair",
        "credit.preview",
        "credit.statisticsexport",
        "scheduler.releasedraft",
        "scheduler.keychange",
    ),
    _("Account manager"): (
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
        "portal.sitetext",
        "accounting.note",
        "accounting.hostclient",
    ),
    _("People and computers"): (
        "portal.account",
        "portal.supportaction",
        "portal.consentevent",
        "portal.user",
        "portal.host",
        "portal.hostlimitrequest",
        "portal.clientkey",
        "portal.jointoken",
        "portal.apitoken",
        "portal.requestedwork",
    ),
}
# Of tables that no group names, such as those of extras, by the room of their app.
_OF_ROOM: Final = {"account_manager": _("Account manager"), "project": _("Apps and credit")}


def groups(request: HttpRequest) -> list[dict[str, Any]]:
    """The groups with what this operator may see, as unfold wants them."""
    # By the words in the page's language: apps name the groups, too.
    found: dict[str, list[dict[str, Any]]] = {str(OVERVIEW): [], **{str(name): [] for name in _MODELS}}
    for page in (*_PAGES, *(page for app in apps_in_use() for page in app.admin_pages())):
        if not page.permission or request.user.has_perm(page.permission):
            _add(found, str(page.group), str(page.title), page.view)
    lists = _lists(request)
    for group, names in _MODELS.items():
        for name in names:
            if name in lists:
                _add(found, str(group), *lists.pop(name)[1:])
    for app, title, view in lists.values():
        _add(found, app, title, view)
    return [{"title": title, "collapsible": False, "items": items} for title, items in found.items() if items]


def _lists(request: HttpRequest) -> dict[str, tuple[str, str, str]]:
    """The tables that this operator may see: app, name and view of each list, by the model's name."""
    found = {}
    listed = {"portal.operatingfigure", "portal.change", "portal.maintenancerun"}
    for model, model_admin in admin.site._registry.items():
        meta = model._meta
        app = meta.app_config
        is_here = not isinstance(app, SiteApp) or app.is_in_use
        if is_here and meta.label_lower not in listed and model_admin.has_view_permission(request):
            title = str(meta.verbose_name_plural)
            view = f"admin:{meta.app_label}_{meta.model_name}_changelist"
            group = _OF_ROOM.get(app.room, app.verbose_name) if isinstance(app, SiteApp) else app.verbose_name
            found[meta.label_lower] = (str(group), title[:1].upper() + title[1:], view)
    return found


def _add(found: dict[str, list[dict[str, Any]]], group: str, title: str, view: str) -> None:
    try:
        found.setdefault(group, []).append({"title": title, "link": reverse(view)})
    except NoReverseMatch:
        # A page of a room that this site does not have.
        return
