"""What people and programs are told while an archived month cannot be read: that nothing is lost, and to try later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import structlog
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.translation import gettext

from accounting.ledger.archive.store import ArchiveUnreadable

log = structlog.get_logger("archive")
_RETRY_SECS: Final = "300"


class ArchiveMiddleware:
    """Turns ArchiveUnreadable of any view into an answer with status 503."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if not isinstance(exception, ArchiveUnreadable):
            return None
        log.error("archive_not_readable", reason=str(exception))
        if request.path_info.startswith("/api/"):
            told = gettext("Older days cannot be read at the moment. Nothing is lost. Try again in a few minutes.")
            return JsonResponse({"detail": told}, status=503, headers={"Retry-After": _RETRY_SECS})
        response = render(request, "accounting/archive_unreadable.html", status=503)
        response.headers["Retry-After"] = _RETRY_SECS
        return response
