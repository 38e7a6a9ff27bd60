"""Who has just changed something sees it: a cookie says so for as long as the replica may lack it."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.core.exceptions import MiddlewareNotUsed
from django.http import HttpRequest, HttpResponse

MARGIN_SECS = 2


class OwnChangesMiddleware:
    """After a request that may have changed something, this browser's pages read the primary for a while."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        if not settings.REPLICA_URL:
            raise MiddlewareNotUsed
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if request.method not in ("GET", "HEAD", "OPTIONS"):
            response.set_cookie(
                settings.CHANGED_COOKIE_NAME,
                "1",
                max_age=settings.REPLICA_LAG_MAX_SECS + MARGIN_SECS,
                secure=settings.HTTPS,
                httponly=True,
                samesite="Lax",
            )
        return response
