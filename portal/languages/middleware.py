"""The language of each page: what the visitor chose, else what their browser asks for."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import translation
from django.utils.cache import patch_vary_headers

Handler = Callable[[HttpRequest], HttpResponse]
# Programs read these, and compare their texts. The page above them, /api/v1/, is for people.
ENGLISH_PATHS: Final = re.compile(r"/api/v\d+/.")


class LanguageMiddleware:
    """Answers each request in its visitor's language.

    In this order: the language of the account, that of the switch (a cookie), the first of the browser's that the site
    has, English. It comes before the middleware that lets visitors look around: they read the pages of a demo account
    in their own language.
    """

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if ENGLISH_PATHS.match(request.path_info):
            with translation.override(settings.LANGUAGE_CODE):
                return self.get_response(request)
        language = _chosen(request) or translation.get_language_from_request(request)
        with translation.override(language):
            response = self.get_response(request)
        if response.headers.get("Content-Type", "").startswith("text/html"):
            response.headers.setdefault("Content-Language", language)
            patch_vary_headers(response, ("Accept-Language", "Cookie"))
        return response


def _chosen(request: HttpRequest) -> str:
    """The language of the account, if somebody is signed in who has chosen one."""
    # Without a cookie nobody is signed in, and the session stays unread: such an answer may be kept for all.
    if settings.SESSION_COOKIE_NAME not in request.COOKIES:
        return ""
    language: str = getattr(request.user, "language", "")
    return language if language in dict(settings.LANGUAGES) else ""
