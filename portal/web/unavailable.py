"""Answers people and scripts while the database is unreachable: a sentence, 503, and when to try again."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Final

import structlog
from django.http import HttpRequest, HttpResponse
from django.template import loader
from django.utils.translation import gettext
from django.views import defaults

from portal.databases import deadline
from portal.databases.dropping import drop_connection
from portal.databases.errors import is_database_lost, is_worth_repeating
from portal.rest.problems import is_asked, problem_reply

log = structlog.get_logger(__name__)

RETRY_AFTER_SECS: Final = 30
_LONGEST_REASON: Final = 300
_REPEATABLE: Final = "database_is_worth_repeating"


class DatabaseMiddleware:
    """Repeats a read-only request once if its connection was lost."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        with deadline.of_request():
            return self._answer(request)

    def _answer(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if request.method in ("GET", "HEAD") and getattr(response, _REPEATABLE, False):
            response = self.get_response(request)
        return response


def server_error(request: HttpRequest) -> HttpResponse:
    """Django's handler of errors, called while one is handled; some are not our faults."""
    error = sys.exc_info()[1]
    if error is None or not is_database_lost(error):
        if is_asked(request):
            return problem_reply(500, "This is a fault of the site, which its operators can see in its log.")
        return defaults.server_error(request)
    log.warning("page_database_lost", reason=str(error)[:_LONGEST_REASON])
    drop_connection()
    response = _unavailable(request)
    setattr(response, _REPEATABLE, is_worth_repeating(error))
    return response


def _unavailable(request: HttpRequest) -> HttpResponse:
    words = gettext("The site cannot reach its database just now. Try again in a minute.")
    response: HttpResponse
    if is_asked(request):
        response = problem_reply(503, words)
    else:
        response = HttpResponse(loader.get_template("503.html").render({"words": words}), status=503)
    response.headers["Retry-After"] = str(RETRY_AFTER_SECS)
    response.headers["Cache-Control"] = "no-store"
    return response
