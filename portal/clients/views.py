"""The clients' addresses under plain Django: DRF views that run the same use cases, under any server.

In production the event loop answers clients (`portal.clients.application`). Where Django is served alone these views
give the same answers, only slower.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from time import perf_counter
from typing import Any, ClassVar, Final

import structlog
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.views import APIView

from portal.clients import request_handler, sync_driver
from portal.clients.bodies import MAX_DROPPED_NBYTES
from portal.clients.messages import ClientReply, ClientRequest, cut_off, refused_by_head
from portal.clients.paths import ClientPath
from portal.databases import deadline

_PART_BYTES: Final = 256 * 1024


class OnlyXml(BaseContentNegotiation):
    """Clients ask for any type, for HTML or for nothing, and are answered in XML.

    DRF's own negotiation would refuse some of them with 406, and parse the query string, where too many parameters are
    a fault that the use case answers.
    """

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        renderer = next(iter(renderers))
        return renderer, renderer.media_type


class ClientView(APIView):
    """One of settings.CLIENT_PATHS. No session, no CSRF, no permissions: clients authenticate by their own protocol."""

    route: ClientPath | None = None
    # Not a part of the REST API that is described at /api/.
    schema = None
    # DRF's default reads an Authorization header and the session's user.
    authentication_classes = ()
    content_negotiation_class = OnlyXml
    # DRF's own has Allow in it, which clients of the event loop get with a 405 only.
    default_response_headers: ClassVar[dict[str, str]] = {}

    def get(self, request: Request) -> HttpResponse:
        assert self.route is not None  # as_view gave it
        return _answered(self.route, request._request)

    def post(self, request: Request) -> HttpResponse:
        return self.get(request)

    # Both replace DRF's own words, which no BOINC client understands, by the event loop's answers. They return Django's
    # response, which nothing renders again, instead of DRF's, which the stubs demand: hence Any.
    def options(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        return self.get(request)

    def http_method_not_allowed(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        return self.get(request)


def client_urls() -> Iterator[URLPattern]:
    """A URL for each of settings.CLIENT_PATHS."""
    for route in settings.CLIENT_PATHS.values():
        yield path(route.path.removeprefix("/"), ClientView.as_view(route=route))


def _answered(route: ClientPath, request: HttpRequest) -> HttpResponse:
    began = perf_counter()
    id_ = request_handler.request_id(request.headers.get("X-Request-ID") if settings.BEHIND_PROXY else None)
    structlog.contextvars.bind_contextvars(request_id=id_)
    length = content_length(request)
    with deadline.of_request():
        reply = _reply(route, request, length)
    request_handler.record(
        route,
        reply,
        method=request.method or "",
        id_=id_,
        began=began,
        bytes_in=length,
        user_agent=request.headers.get("User-Agent", ""),
    )
    headers = {"Content-Length": str(len(reply.body)), **dict(reply.headers)}
    return HttpResponse(reply.body, status=reply.status, content_type=reply.content_type, headers=headers)


def _reply(route: ClientPath, request: HttpRequest, length: int) -> ClientReply:
    method = request.method or ""
    # The server hands a chunked body on as an empty one.
    refused = refused_by_head(route, method, length, is_chunked="HTTP_TRANSFER_ENCODING" in request.META)
    if refused is not None:
        return refused
    body = _Body(request, length)
    content = b""
    if method == "POST" and not route.is_stream:
        with suppress(OSError):
            content = body.read(route.body_bytes)
            body.drop(route.longest_bytes)
        if body.nleft:
            return cut_off(route)
    address = request.META.get("REMOTE_ADDR", "")
    client_request = ClientRequest(method, route.path, request.META.get("QUERY_STRING", ""), content, length, address)
    reply = sync_driver.run(request_handler.steps(route, client_request), body.read)
    body.drop(MAX_DROPPED_NBYTES)
    return reply


class _Body:
    """A request's body; not `HttpRequest.body`, whose limit is one for all paths. ``nleft``: bytes not read yet."""

    def __init__(self, request: HttpRequest, length: int) -> None:
        self._request = request
        self.nleft = length

    def read(self, nbytes: int) -> bytes:
        """Read this many bytes; fewer, or none, at the end, which may come too soon. OSError if the client is gone."""
        part = self._request.read(min(nbytes, self.nleft))
        self.nleft -= len(part)
        return part

    def drop(self, most: int) -> None:
        """Read and drop the rest, up to this many bytes."""
        with suppress(OSError):
            while most > 0 and (part := self.read(min(most, _PART_BYTES))):
                most -= len(part)


def content_length(request: HttpRequest) -> int:
    """The Content-Length; as in Django, one that is not a number counts as 0."""
    try:
        return max(0, int(request.META.get("CONTENT_LENGTH") or 0))
    except ValueError:
        return 0
