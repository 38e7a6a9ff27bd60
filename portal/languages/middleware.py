"""The language and time zone of each page: what the visitor chose, else what their browser says."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import translation
from django.utils.cache import patch_vary_headers

from portal.languages import zones
from portal.languages.sources import WHOLE_LANGUAGES

Handler = Callable[[HttpRequest], HttpResponse]
# Programs read these, and compare their texts. The page above them, /api/v1/, is for people.
ENGLISH_PATHS: Final = re.compile(r"/api/v\d+/.")
# Some languages have no texts for these in their catalogues, and pages in two languages would be worse.
OPERATORS_PATHS: Final = re.compile(r"/admin/")


class LanguageMiddleware:
    """Answers each request in its visitor's language, with times in their zone.

    The language is the first known of: the account's, the switch's (a cookie), the first of the browser's that the site
    has, English. The zone: the account's, the browser's (a cookie that a script sets), UTC.

    It comes before the middleware that lets visitors look around, so they read a demo account's pages in their own
    language.
    """

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if ENGLISH_PATHS.match(request.path_info):
            with translation.override(settings.LANGUAGE_CODE):
                return self.get_response(request)
        language = known_language(_of_account(request, "language"))
        language = language or translation.get_language_from_request(request)
        if language not in WHOLE_LANGUAGES and OPERATORS_PATHS.match(request.path_info):
            language = settings.LANGUAGE_CODE
        zone = zones.zone_named(_of_account(request, "time_zone") or request.COOKIES.get(zones.COOKIE, ""))
        with translation.override(language), zones.shown_in(zone):
            response = self.get_response(request)
        if response.headers.get("Content-Type", "").startswith("text/html"):
            response.headers.setdefault("Content-Language", language)
            patch_vary_headers(response, ("Accept-Language", "Cookie"))
        return response


def _of_account(request: HttpRequest, field: str) -> str:
    """The choice of the signed-in user; empty if there is none, or nobody is signed in."""
    # Without a cookie nobody is signed in, and the session stays unread, so that the answer may be cached for all.
    if settings.SESSION_COOKIE_NAME not in request.COOKIES:
        return ""
    return str(getattr(request.user, field, ""))


def known_language(code: str) -> str:
    """The code if the site has the language, else ""."""
    return code if code in dict(settings.LANGUAGES) else ""
