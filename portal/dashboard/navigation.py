"""The admin's sidebar, grouped by six questions instead of by package.

Apps say which pages they have besides lists of tables (`portal.extras`). A table that no group names comes last in the
group that its app names, in that of its app's room, or in the settings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.apps import AppConfig
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


OVERVIEW: Final = _("Is all well?")
_PEOPLE: Final = _("People")
_PROJECTS: Final = _("Projects")
JOBS: Final = _("Jobs")
CREDIT: Final = _("Credit")
SETTINGS: Final = _("Settings")
_ROOMS: Final = (OVERVIEW, _PEOPLE, _PROJECTS, JOBS, CREDIT, SETTINGS)
_PAGES: Final = (
    AdminPage(OVERVIEW, _("What needs attention"), "admin:index", "portal.view_operatingfigure"),
    AdminPage(OVERVIEW, _("Public status"), "status"),
    AdminPage(OVERVIEW, _("Figures taken"), "admin:portal_operatingfigure_changelist", "portal.view_operatingfigure"),
    AdminPage(OVERVIEW, _("Maintenance"), "admin:portal_maintenancerun_changelist", "portal.view_maintenancerun"),
    AdminPage(SETTINGS, _("Changes of settings"), "admin:portal_change_changelist", "portal.view_change"),
    AdminPage(
        SETTINGS,
        _("Steps to confirm"),
        "admin:portal_confirmationrequest_changelist",
        "portal.view_confirmationrequest",
    ),
    AdminPage(SETTINGS, _("Signed log"), "admin:portal_signedentry_changelist", "portal.view_signedentry"),
)
_MODELS: Final[dict[StrOrPromise, tuple[str, ...]]] = {
    OVERVIEW: ("portal.requestedwork", "scheduler.retryentry"),
    _PEOPLE: (
        "portal.user",
        "portal.account",
        "portal.host",
        "portal.hostlimitrequest",
        "portal.clientkey",
        "portal.jointoken",
        "portal.apitoken",
        "portal.consentevent",
        "portal.supportaction",
        "accounting.hostclient",
        "accounting.note",
    ),
    _PROJECTS: (
        "accounting.project",
        "accounting.projecttrouble",
        "accounting.projectstanding",
        "accounting.projectday",
        "accounting.userproject",
        "accounting.tasksource",
        "accounting.statisticsimport",
        "accounting.settlement",
    ),
    JOBS: (
        "credit.batch",
        "credit.workunit",
        "credit.result",
        "credit.app",
        "credit.appversion",
        "scheduler.submitter",
        "scheduler.workblock",
        "scheduler.releasedraft",
        "scheduler.storedfile",
        "scheduler.trickle",
        "scheduler.trickledown",
    ),
    CREDIT: (
        "credit.preview",
        "credit.hostappversion",
        "credit.confirmingpair",
        "credit.statisticsexport",
    ),
    SETTINGS: (
        "portal.sitetext",
        "accounting.announcement",
        "accounting.accountsettings",
        "credit.platform",
        "scheduler.planclass",
        "scheduler.appkeyword",
        "scheduler.keychange",
    ),
}
# Their pages are listed above.
_LISTED: Final = {
    "portal.operatingfigure",
    "portal.change",
    "portal.maintenancerun",
    "portal.confirmationrequest",
    "portal.signedentry",
}
# Names of lists where the plural of the model does not say what they are for.
_TITLES: Final = {
    "portal.account": _("Help a volunteer"),
    "scheduler.retryentry": _("Retry queue"),
    "accounting.settlement": _("Granted and estimated credit"),
}
# Groups of tables that neither a group nor their app names, by the app's room.
_OF_ROOM: Final = {"account_manager": _PROJECTS, "project": CREDIT}


def groups(request: HttpRequest) -> list[dict[str, Any]]:
    """The groups with what this operator may see, in unfold's format."""
    # Keyed by the words in the page's language, as apps name the groups, too.
    links: dict[str, list[dict[str, Any]]] = {str(name): [] for name in _ROOMS}
    for page in (*_PAGES, *(page for app in apps_in_use() for page in app.admin_pages())):
        if not page.permission or request.user.has_perm(page.permission):
            _add(links, str(page.group), str(page.title), page.view)
    lists = _lists(request)
    for group, names in _MODELS.items():
        for name in names:
            if name in lists:
                _add(links, str(group), *lists.pop(name)[1:])
    for app, title, view in lists.values():
        _add(links, app, title, view)
    return [{"title": title, "items": items} for title, items in links.items() if items]


def _lists(request: HttpRequest) -> dict[str, tuple[str, str, str]]:
    """The tables that this operator may see: app, name and view of each list, by the model's name."""
    lists = {}
    for model, model_admin in admin.site._registry.items():
        meta = model._meta
        app = meta.app_config
        is_here = not isinstance(app, SiteApp) or app.is_in_use
        if is_here and meta.label_lower not in _LISTED and model_admin.has_view_permission(request):
            title = str(_TITLES.get(meta.label_lower, meta.verbose_name_plural))
            view = f"admin:{meta.app_label}_{meta.model_name}_changelist"
            lists[meta.label_lower] = (str(_group(app)), title[:1].upper() + title[1:], view)
    return lists


def _group(app: AppConfig) -> StrOrPromise:
    return (app.admin_group() or _OF_ROOM.get(app.room, SETTINGS)) if isinstance(app, SiteApp) else SETTINGS


def _add(links: dict[str, list[dict[str, Any]]], group: str, title: str, view: str) -> None:
    try:
        links.setdefault(group, []).append({"title": title, "link": reverse(view)})
    except NoReverseMatch:
        # The page belongs to a room that this site does not have.
        return
