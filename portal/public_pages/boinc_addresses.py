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
class Counterpart:
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
class NoCounterpart:
    """An address of something that this software does not have."""

    reason: StrOrPromise


_NO_BOARDS: Final = NoCounterpart(_("This site has no message boards."))
_NO_LETTERS: Final = NoCounterpart(_("This site has no private messages and no lists of friends."))
_NO_PROFILES: Final = NoCounterpart(_("This site has no public pages of volunteers, and no search for them."))
_NO_HOST_LISTS: Final = NoCounterpart(
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
_MAIL_CHOICE: Final = Counterpart("mail_preferences")
_SIGN_UP: Final = Counterpart("account_signup")
_PERSON: Final = Counterpart("home", owner="userid", is_about_person=True)
_HOST: Final = Counterpart("host", number="hostid", otherwise="computers")
_TEAM: Final = Counterpart("team", number="teamid", otherwise="teams")

BOINC_PAGES: Final[Mapping[str, Counterpart | NoCounterpart]] = {
    # BOINC's Manager and its Android app
    "account_finish": Counterpart("profile", message=_COMPUTER_READY),
    "get_passwd": Counterpart("account_reset_password"),
    # Pages that projects have the Manager show beside their tasks
    "home": Counterpart("home"),
    "results": Counterpart("tasks", filters={"hostid": "host"}, owner="userid"),
    "team_display": _TEAM,
    # The account
    "login_form": Counterpart("account_login"),
    "login_action": Counterpart("account_login"),
    "logout": Counterpart("account_logout"),
    "join": _SIGN_UP,
    "signup": _SIGN_UP,
    "create_account_form": _SIGN_UP,
    "welcome": Counterpart("connect"),
    "download": Counterpart("connect"),
    "download_software": Counterpart("connect"),
    "mail_passwd": Counterpart("account_reset_password"),
    "recover_email": Counterpart("account_email"),
    "validate_email_addr": Counterpart("account_email"),
    "edit_email_form": Counterpart("account_email"),
    "edit_passwd_form": Counterpart("account_change_password"),
    "edit_user_info_form": Counterpart("profile"),
    "edit_forum_preferences_form": _MAIL_CHOICE,
    "opt_out": _MAIL_CHOICE,
    "weak_auth": Counterpart("keys"),
    "delete_account_request": Counterpart("delete_account"),
    "delete_account_confirm": Counterpart("delete_account"),
    "prefs": Counterpart("preferences"),
    "prefs_edit": Counterpart("preferences"),
    "prefs_default": Counterpart("preferences"),
    "add_venue": Counterpart("preferences"),
    "kw_prefs": Counterpart("keywords"),
    "cert1": Counterpart("certificates"),
    "cert_all": Counterpart("certificates"),
    # Volunteers, computers, tasks
    "show_user": Counterpart("home", owner="userid", is_about_person=True, has_xml=True),
    "userw": Counterpart("home", owner="id", is_about_person=True),
    "view_profile": _PERSON,
    "hosts_user": Counterpart("computers", owner="userid"),
    "show_host_detail": Counterpart("host", number="hostid", otherwise="computers", has_xml=True),
    "host_app_versions": _HOST,
    "host_edit_form": _HOST,
    "host_delete": _HOST,
    "merge_by_name": Counterpart("computers"),
    "explain_state": Counterpart("tasks"),
    "result": Counterpart("task", number="resultid", otherwise="tasks"),
    "workunit": Counterpart("workunit", number="wuid", otherwise="tasks"),
    # Teams and lists
    "team": _TEAM,
    "team_members": _TEAM,
    "team_join_form": _TEAM,
    "team_edit_form": _TEAM,
    "team_manage": _TEAM,
    "team_admins": _TEAM,
    "team_quit_form": _TEAM,
    "team_change_founder_form": _TEAM,
    "team_search": Counterpart("teams"),
    "team_create_form": Counterpart("new_team"),
    "top_users": Counterpart("top_volunteers"),
    "top_teams": Counterpart("top_teams"),
    "top_hosts": _NO_HOST_LISTS,
    "host_stats": _NO_HOST_LISTS,
    "os_stats": _NO_HOST_LISTS,
    "cpu_list": _NO_HOST_LISTS,
    "gpu_list": _NO_HOST_LISTS,
    # The project
    "index": Counterpart("landing"),
    "info": Counterpart("about"),
    "apps": Counterpart("apps", has_xml=True),
    "stats": Counterpart("statistics"),
    "server_status": Counterpart("status"),
    "rss_main": Counterpart("notices"),
    "notify_rss": Counterpart("notices"),
    "all_news": Counterpart("news"),
    "old_news": Counterpart("news"),
    # For submitters of jobs
    "sandbox": Counterpart("batches"),
    "submit": Counterpart("batches"),
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
    "su_home": Counterpart("home"),
    "su_show_user": _PERSON,
    "su_hosts": Counterpart("host", number="host_id", otherwise="computers", owner="user_id"),
    "su_prefs": Counterpart("keywords"),
    "su_compute_prefs": Counterpart("preferences"),
    "su_email_prefs": _MAIL_CHOICE,
    "su_unsubscribe": _MAIL_CHOICE,
    "su_user_projects": Counterpart("projects"),
    "su_user_accounting": Counterpart("history"),
    "su_graph": Counterpart("history", owner="userid"),
    "su_graph2": Counterpart("history", owner="userid"),
    # Its project numbers are not ours.
    "su_connect": Counterpart("projects"),
    "su_show_project": Counterpart("projects"),
    "su_projects_acct": Counterpart("projects"),
    "su_join": _SIGN_UP,
    "su_welcome": Counterpart("connect"),
    "su_download": Counterpart("connect"),
    "su_cert": Counterpart("certificates"),
    "su_lb": Counterpart("top_volunteers"),
    "su_lb_intro": Counterpart("top_lists_consent"),
    "su_account_settings": Counterpart("profile"),
    "su_help": Counterpart("about"),
    "su_about": Counterpart("about"),
    "su_intro": Counterpart("about"),
    "su_science": Counterpart("projects"),
    "su_privacy": Counterpart("privacy"),
    "su_auth_login": Counterpart("account_login"),
    "intro": Counterpart("about"),
}


@require_safe
@never_cache
def boinc_page(request: HttpRequest, name: str) -> HttpResponse:
    """Lead an address of BOINC's web site to our page, or say what there is instead."""
    page = BOINC_PAGES.get(name)
    if page is None:
        raise Http404("no address of BOINC's")
    response = _no_page(request, page.reason, 410) if isinstance(page, NoCounterpart) else _lead(request, name, page)
    # Keeps a key in this address from the next page.
    response.headers["Referrer-Policy"] = "no-referrer"
    return response


def _lead(request: HttpRequest, name: str, page: Counterpart) -> HttpResponse:
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


def _address(request: HttpRequest, name: str, page: Counterpart) -> str:
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
