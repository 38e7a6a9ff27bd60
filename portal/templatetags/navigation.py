"""Links of the header: each knows whether it leads to the page that is shown."""

from __future__ import annotations

from typing import Any

from django import template
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from portal.extras import LinkPlace, apps_in_use

register = template.Library()


def _link(context: dict[str, Any], name: str, label: str, *, below: bool) -> SafeString:
    """An ``a`` element to the named page, marked when it is the present one (or, ``below``, leads to it)."""
    try:
        url = reverse(name)
    except NoReverseMatch:
        # A part of the site that this installation does not have (settings.ROOMS).
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
    """Links of a place to pages of other apps, extras above all (`portal.extras.LinkPlace`)."""
    links = [link for app in apps_in_use() for link in app.links() if LinkPlace(place) in link.places]
    below = place == LinkPlace.ACCOUNT_TABS
    between = " · " if place == LinkPlace.PROJECT else "\n"
    return format_html_join(
        between, "{}", ((_link(context, link.view, str(link.title), below=below),) for link in links)
    )
