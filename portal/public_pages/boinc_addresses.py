"""Addresses of BOINC's and Science United's web sites, which programs, mails and boards link to, and our pages for
them.

Only what the table names is passed on to a page of ours, and only as a number. An account key, a code or an address in
an old link is neither read nor passed on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

_MAX_DIGITS: Final = 18


@dataclass(frozen=True, slots=True)
class Moved:
    """An address that has a page of ours.

    ``number``: the parameter whose number is part of our page's address; ``otherwise``: the page without it.
    ``filters``: parameters, with their names in our page's query. ``owner``: the parameter that names a volunteer, who
    alone has this page. ``has_xml``: on request, the project answers in XML.
    ``message``: shown on the page.
    """

    view: str
    number: str = ""
    otherwise: str = ""
    filters: Mapping[str, str] = field(default_factory=dict)
    owner: str = ""
    is_about_person: bool = False
    has_xml: bool = False
    message: StrOrPromise = ""


@dataclass(frozen=True, slots=True)
class Gone:
    """An address of something that this software does not have."""

    reason: StrOrPromise


_NO_BOARDS: Final = Gone(_("This site has no message boards."))
_NO_LETTERS: Final = Gone(_("This site has no private messages and no lists of friends."))
_NO_PROFILES: Final = Gone(_("This site has no public pages of volunteers, and no search for them."))
_NO_HOST_LISTS: Final = Gone(
    _("This site has no lists and no statistics of everybody’s computers. Each volunteer sees their own.")
)
_NO_PUBLIC_PAGE: Final = _(
    "Volunteers have no public page here: only you see your credit, your computers and your tasks."
)
_NOT_HERE: Final = _("This part of the software is not in use here.")
_COMPUTER_READY: Final = _(
    "Your computer is attached. If you are asked, sign in with the e-mail address and the password that you gave to "
    "BOINC; then choose the name by which this site and BOINC call you."
)
_MAIL_CHOICE: Final = Moved("mail_preferences")
_SIGN_UP: Final = Moved("account_signup")
_PERSON: Final = Moved("home", owner="userid", is_about_person=True)
_HOST: Final = Moved("host", number="hostid", otherwise="computers")
_TEAM: Final = Moved("team", number="teamid", otherwise="teams")

BOINC_PAGES: Final[Mapping[str, Moved | Gone]] = {
    # BOINC's Manager and its Android app
    "account_finish": Moved("profile", message=_COMPUTER_READY),
    "get_passwd": Moved("account_reset_password"),
    # Pages that projects have the Manager show beside their tasks
    "home": Moved("home"),
    "results": Moved("tasks", filters={"hostid": "host"}, owner="userid"),
    "team_display": _TEAM,
    # The account
    "login_form": Moved("account_login"),
    "login_action": Moved("account_login"),
    "logout": Moved("account_logout"),
    "join": _SIGN_UP,
    "signup": _SIGN_UP,
    "create_account_form": _SIGN_UP,
    "welcome": Moved("connect"),
    "download": Moved("connect"),
    "download_software": Moved("connect"),
    "mail_passwd": Moved("account_reset_password"),
    "recover_email": Moved("account_email"),
    "validate_email_addr": Moved("account_email"),
    "edit_email_form": Moved("account_email"),
    "edit_passwd_form": Moved("account_change_password"),
    "edit_user_info_form": Moved("profile"),
    "edit_forum_preferences_form": _MAIL_CHOICE,
    "opt_out": _MAIL_CHOICE,
    "weak_auth": Moved("keys"),
    "delete_account_request": Moved("delete_account"),
    "delete_account_confirm": Moved("delete_account"),
    "prefs": Moved("preferences"),
    "prefs_edit": Moved("preferences"),
    "prefs_default": Moved("preferences"),
    "add_venue": Moved("preferences"),
    "kw_prefs": Moved("keywords"),
    "cert1": Moved("certificates"),
    "cert_all": Moved("certificates"),
    # Volunteers, computers, tasks
    "show_user": Moved("home", owner="userid", is_about_person=True, has_xml=True),
    "userw": Moved("home", owner="id", is_about_person=True),
    "view_profile": _PERSON,
    "hosts_user": Moved("computers", owner="userid"),
    "show_host_detail": Moved("host", number="hostid", otherwise="computers", has_xml=True),
    "host_app_versions": _HOST,
    "host_edit_form": _HOST,
    "host_delete": _HOST,
    "merge_by_name": Moved("computers"),
    "explain_state": Moved("tasks"),
    "result": Moved("task", number="resultid", otherwise="tasks"),
    "workunit": Moved("workunit", number="wuid", otherwise="tasks"),
    # Teams and lists
    "team": _TEAM,
    "team_members": _TEAM,
    "team_join_form": _TEAM,
    "team_edit_form": _TEAM,
    "team_manage": _TEAM,
    "team_admins": _TEAM,
    "team_quit_form": _TEAM,
    "team_change_founder_form": _TEAM,
    "team_search": Moved("teams"),
    "team_create_form": Moved("new_team"),
    "top_users": Moved("top_volunteers"),
    "top_teams": Moved("top_teams"),
    "top_hosts": _NO_HOST_LISTS,
    "host_stats": _NO_HOST_LISTS,
    "os_stats": _NO_HOST_LISTS,
    "cpu_list": _NO_HOST_LISTS,
    "gpu_list": _NO_HOST_LISTS,
    # The project
    "index": Moved("landing"),
    "info": Moved("about"),
    "apps": Moved("apps", has_xml=True),
    "stats": Moved("statistics"),
    "server_status": Moved("status"),
    "rss_main": Moved("notices"),
    "notify_rss": Moved("notices"),
    "all_news": Moved("news"),
    "old_news": Moved("news"),
    # For submitters of jobs
    "sandbox": Moved("batches"),
    "submit": Moved("batches"),
    # Pages without a counterpart here
    **dict.fromkeys(
        ("forum_index", "forum_forum", "forum_thread", "forum_help_desk", "forum_user_posts", "forum_search"),
        _NO_BOARDS,
    ),
    **dict.fromkeys(("forum_rss", "forum_post", "forum_reply", "forum_subscribe", "team_forum"), _NO_BOARDS),
    **dict.fromkeys(("create_profile", "profile_menu", "uotd", "user_search"), _NO_PROFILES),
    "pm": _NO_LETTERS,
    "friend": _NO_LETTERS,
    # Science United
    "su_home": Moved("home"),
    "su_show_user": _PERSON,
    "su_hosts": Moved("host", number="host_id", otherwise="computers", owner="user_id"),
    "su_prefs": Moved("keywords"),
    "su_compute_prefs": Moved("preferences"),
    "su_email_prefs": _MAIL_CHOICE,
    "su_unsubscribe": _MAIL_CHOICE,
    "su_user_projects": Moved("projects"),
    "su_user_accounting": Moved("history"),
    "su_graph": Moved("history", owner="userid"),
    "su_graph2": Moved("history", owner="userid"),
    # Its project numbers are not ours.
    "su_connect": Moved("projects"),
    "su_show_project": Moved("projects"),
    "su_projects_acct": Moved("projects"),
    "su_join": _SIGN_UP,
    "su_welcome": Moved("connect"),
    "su_download": Moved("connect"),
    "su_cert": Moved("certificates"),
    "su_lb": Moved("top_volunteers"),
    "su_lb_intro": Moved("top_lists_consent"),
    "su_account_settings": Moved("profile"),
    "su_help": Moved("about"),
    "su_about": Moved("about"),
    "su_intro": Moved("about"),
    "su_science": Moved("projects"),
    "su_privacy": Moved("privacy"),
    "su_auth_login": Moved("account_login"),
    "intro": Moved("about"),
}


@require_safe
@never_cache
def boinc_page(request: HttpRequest, name: str) -> HttpResponse:
    """Lead an address of BOINC's web site to our page, or say what there is instead."""
    page = BOINC_PAGES.get(name)
    if page is None:
        raise Http404("no address of BOINC's")
    response = _no_page(request, page.reason, 410) if isinstance(page, Gone) else _lead(request, name, page)
    # Keeps a key in this address from the next page.
    response.headers["Referrer-Policy"] = "no-referrer"
    return response


def _lead(request: HttpRequest, name: str, page: Moved) -> HttpResponse:
    if page.has_xml and _asks_xml(request) and f"/project/{name}.php" in settings.CLIENT_PATHS:
        numbers = {
            parameter: value for parameter in (page.number, page.owner) if (value := _number(request, parameter))
        }
        return redirect(f"/project/{name}.php?{urlencode({**numbers, 'format': 'xml'})}")
    owner = _number(request, page.owner)
    if owner and owner != request.user.pk:
        if request.user.is_authenticated or page.is_about_person:
            return _no_page(request, _NO_PUBLIC_PAGE, 404)
        return redirect_to_login(_address(request, name, page))
    number = _number(request, page.number)
    try:
        target = reverse(page.view, args=[number]) if number else reverse(page.otherwise or page.view)
    except NoReverseMatch:
        return _no_page(request, _NOT_HERE, 404)
    filters = {ours: value for theirs, ours in page.filters.items() if (value := _number(request, theirs))}
    if page.message:
        messages.info(request, page.message)
    return redirect(f"{target}?{urlencode(filters)}" if filters else target)


def _no_page(request: HttpRequest, reason: StrOrPromise, status: int) -> HttpResponse:
    return render(request, "portal/no_boinc_page.html", {"reason": reason}, status=status)


def _address(request: HttpRequest, name: str, page: Moved) -> str:
    """The address again, with only the parameters that are read."""
    numbers = _numbers(request, page.owner, page.number, *page.filters)
    return f"{reverse('boinc_page', kwargs={'name': name})}?{urlencode(numbers)}"


def _numbers(request: HttpRequest, *parameters: str) -> dict[str, int]:
    return {parameter: value for parameter in parameters if (value := _number(request, parameter))}


def _number(request: HttpRequest, parameter: str) -> int:
    """The number in a parameter; 0 if it is missing or not a number."""
    text = request.GET.get(parameter, "") if parameter else ""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS else 0


def _asks_xml(request: HttpRequest) -> bool:
    return request.GET.get("format") == "xml" or request.GET.get("xml", "0") not in ("", "0")
