"""Files that browsers, search engines and security researchers look for at fixed addresses."""

from __future__ import annotations

import datetime as dt
from typing import Final
from urllib.parse import urljoin
from xml.sax.saxutils import escape

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.templatetags.static import static
from django.urls import NoReverseMatch, reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from portal.public_pages.about import has_about

SECURITY_VALID_DAYS: Final = 90
"""RFC 9116 recommends less than a year. It is computed, so the file never expires while the site is up."""
_PUBLIC_PAGES: Final = ("landing", "projects", "apps", "news", "status", "about", "privacy", "terms")
_NOT_FOR_ROBOTS: Final = ("/admin/", "/account/", "/api/")
_GROUND: Final = "#f4f1ec"
"""The favicon's background."""


@require_safe
def favicon(_request: HttpRequest) -> HttpResponse:
    """Redirect to the file whose name changes with its content."""
    return redirect(static("portal/favicon.ico"))


@require_safe
def robots(_request: HttpRequest) -> HttpResponse:
    lines = ["User-agent: *", *(f"Disallow: {path}" for path in _NOT_FOR_ROBOTS), f"Sitemap: {_of_site('sitemap')}"]
    return _text(lines)


@require_safe
def sitemap(_request: HttpRequest) -> HttpResponse:
    """List the public pages of the rooms that this installation has."""
    names = [name for name in _PUBLIC_PAGES if name != "about" or has_about()]
    pages = "".join(f"<url><loc>{escape(address)}</loc></url>" for address in map(_of_site, names) if address)
    text = f'<?xml version="1.0" encoding="UTF-8"?><urlset xmlns="{_SITEMAP}">{pages}</urlset>'
    return HttpResponse(text, content_type="application/xml")


_SITEMAP: Final = "http://www.sitemaps.org/schemas/sitemap/0.9"


@require_safe
def web_app_manifest(_request: HttpRequest) -> JsonResponse:
    """Lets the site be put on a phone's home screen; otherwise iPhones show none of its messages."""
    icons = [
        {"src": static(f"portal/icon-{pixels}.png"), "sizes": f"{pixels}x{pixels}", "type": "image/png"}
        for pixels in (192, 512)
    ]
    manifest = {
        "name": settings.SITE_NAME,
        "id": "/",
        "start_url": "/",
        "display": "standalone",
        "background_color": _GROUND,
        "theme_color": _GROUND,
        "icons": icons,
    }
    return JsonResponse(manifest, content_type="application/manifest+json")


@require_safe
def security(_request: HttpRequest) -> HttpResponse:
    """Whom to tell about a weakness (RFC 9116); without a contact there is no such file."""
    if not settings.CONTACT:
        raise Http404("the setting CONTACT is empty")
    today = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)
    expires_at = today + dt.timedelta(days=SECURITY_VALID_DAYS)
    lines = [
        f"Contact: {settings.CONTACT_LINK}",
        f"Expires: {expires_at:%Y-%m-%dT%H:%M:%SZ}",
        f"Preferred-Languages: {', '.join(code for code, _name in settings.LANGUAGES)}",
    ]
    if settings.HTTPS:
        # The RFC allows no other scheme here.
        lines.append(f"Canonical: {urljoin(settings.SITE_URL, '/.well-known/security.txt')}")
    return _text(lines)


@require_safe
def change_password(_request: HttpRequest) -> HttpResponse:
    """Redirect password managers to the form."""
    return redirect("account_change_password")


def _of_site(name: str) -> str:
    """A page's public address; empty if this installation does not have the page."""
    try:
        return urljoin(settings.SITE_URL, reverse(name))
    except NoReverseMatch:
        return ""


def _text(lines: list[str]) -> HttpResponse:
    return HttpResponse("".join(f"{line}\n" for line in lines), content_type="text/plain; charset=utf-8")
