"""Answers requests that need the object storage while it is unreachable: try again."""

from __future__ import annotations

from typing import Final

import structlog
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.deprecation import MiddlewareMixin

from portal.object_storage.errors import StorageError
from portal.rest.problems import is_asked, problem_reply

log = structlog.get_logger(__name__)
RETRY_SECS: Final = 60


class StorageErrorMiddleware(MiddlewareMixin):
    """Answers 503 instead of 500: nothing was changed, and the request may be repeated."""

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if not isinstance(exception, StorageError):
            return None
        log.warning("storage_failed", reason=str(exception))
        if is_asked(request):
            words = "The file storage cannot be reached. Nothing was changed; try again in a minute."
            reply: HttpResponse = problem_reply(503, words)
        else:
            reply = render(request, "503_storage.html", status=503)
        reply.headers["Retry-After"] = str(RETRY_SECS)
        return reply
