"""Links of the header and of the account's pages, which are marked if they lead to the present page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django import template
from django.conf import settings
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext_lazy as _

from portal.extras import Link, LinkPlace, apps_in_use

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

register = template.Library()


def _link(context: dict[str, Any], name: str, label: str, *, below: bool) -> SafeString:
    """An ``a`` element to the named page, marked if that is the present one (or, with ``below``, one above it)."""
    url = _url_of(name)
    if not url:
        return mark_safe("")
    request = context.get("request")
    path = request.path if request is not None else ""
    here = path == url or (below and path.startswith(url))
    current = mark_safe(' aria-current="page"') if here else ""
    return format_html('<a href="{}"{}>{}</a>', url, current, label)


@register.simple_tag(takes_context=True)
def nav_link(context: dict[str, Any], name: str, label: str) -> SafeString:
    """A link of the main navigation, marked on its page and on those below it."""
    return _link(context, name, label, below=True)


@register.simple_tag(takes_context=True)
def menu_link(context: dict[str, Any], name: str, label: str) -> SafeString:
    """A link of a menu, marked on its own page only."""
    return _link(context, name, label, below=False)


@register.simple_tag(takes_context=True)
def app_links(context: dict[str, Any], place: str) -> SafeString:
    """Links in this place to pages of other apps, mostly extras (`portal.extras.LinkPlace`)."""
    between = " · " if place == LinkPlace.PROJECT else "\n"
    links = [(link.view, str(link.title)) for link in _links_of_apps(LinkPlace(place))]
    return format_html_join(between, "{}", ((_link(context, *link, below=False),) for link in links))


def _links_of_apps(place: LinkPlace) -> list[Link]:
    return [link for app in apps_in_use() for link in app.links() if place in link.places]


_GROUPS: Final[tuple[tuple[LinkPlace, StrOrPromise, tuple[tuple[str, StrOrPromise], ...]], ...]] = (
    (
        LinkPlace.COMPUTING,
        _("Computing"),
        (
            ("preferences", _("Preferences")),
            ("project_preferences", _("This project")),
            ("testing", _("Testing")),
        ),
    ),
    (LinkPlace.MESSAGES, _("Messages"), (("mail_preferences", _("E-mails")),)),
    (
        LinkPlace.PUBLIC,
        _("What others see"),
        (("profile", _("Profile")), ("statistics_consent", _("Statistics sites"))),
    ),
    (
        LinkPlace.SIGN_IN,
        _("Sign-in and security"),
        (
            ("account_email", _("E-mail address")),
            ("login_name", _("User name")),
            ("account_change_password", _("Password")),
            ("mfa_index", _("Two-factor login")),
            ("sessions", _("Sessions")),
            ("keys", _("Client keys")),
            ("tokens", _("API tokens")),
            ("security_events", _("Security events")),
        ),
    ),
    (LinkPlace.DATA, _("Your data"), (("data", _("Copy and deletion")), ("consents", _("Consents")))),
)


@dataclass(frozen=True, slots=True)
class AccountPage:
    """A page of the account."""

    title: str
    url: str
    is_current: bool


@dataclass(frozen=True, slots=True)
class AccountGroup:
    """Account pages that belong together; the group leads to the first one."""

    title: str
    pages: list[AccountPage]

    @property
    def url(self) -> str:
        return self.pages[0].url

    @property
    def is_current(self) -> bool:
        return any(page.is_current for page in self.pages)


@register.simple_tag(takes_context=True)
def account_groups(context: dict[str, Any]) -> list[AccountGroup]:
    """The groups of account pages, with those of other apps; the present page is marked."""
    request = context.get("request")
    path = request.path if request is not None else ""
    groups = []
    for place, title, own in _GROUPS:
        links = [*own, *((link.view, link.title) for link in _links_of_apps(place))]
        account_links = [(str(label), url) for view, label in links if (url := _url_of(view))]
        pages = [AccountPage(label, url, path.startswith(url)) for label, url in account_links]
        if pages:
            groups.append(AccountGroup(str(title), pages))
    return groups


def _url_of(view: str) -> str:
    """The view's address; empty for a part of the site that this installation does not have (settings.ROOMS)."""
    if view == "login_name" and not settings.LOGIN_BY_USER_NAME:
        return ""
    try:
        return reverse(view)
    except NoReverseMatch:
        return ""
