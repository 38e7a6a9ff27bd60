"""Middleware of the site: the short way of the client protocols, one log line per request, the admin's CSP."""

from __future__ import annotations

import ipaddress
import random
import re
from collections.abc import Callable, Mapping, Set
from time import perf_counter
from typing import Final, NamedTuple
from xml.sax.saxutils import escape

import structlog
from csp.middleware import CSPMiddleware, PolicyParts
from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.core.signals import got_request_exception
from django.http import HttpRequest, HttpResponse, HttpResponseBase, UnreadablePostError
from django.urls import resolve

from portal import metrics
from portal.boinc_errors import ERR_GENERIC, ERR_XML_PARSE
from portal.logs import USER_AGENT_CHARS, log_request, loggable_path
from portal.once import once

Handler = Callable[[HttpRequest], HttpResponse]
log = structlog.get_logger(__name__)

_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._-]{8,64}\Z")
# Asked by load balancers under any host name: they take the short way too.
PROBES: Final = frozenset({"/healthz", "/readyz", "/metrics"})
TRY_LATER: Final = "The server failed to answer this request. Please try again in some minutes."


class Rules(NamedTuple):
    """The settings that each client's request asks for."""

    roots: Mapping[str, str]
    streams: Set[str]
    body_bytes: Mapping[str, int]
    usual_body_bytes: int
    is_behind_proxy: bool


@once
def rules_of_protocols() -> Rules:
    return Rules(
        settings.PROTOCOLS,
        settings.PROTOCOL_STREAMS,
        settings.PROTOCOL_BODY_BYTES,
        settings.DATA_UPLOAD_MAX_MEMORY_SIZE,
        settings.BEHIND_PROXY,
    )


class ProtocolMiddleware:
    """Hands requests of BOINC clients straight to their view: no session, no cookies, no redirects, no CSRF.

    The paths are the keys of settings.PROTOCOLS. A client gets a BOINC error with status 200 whatever happens, as
    boinccmd waits for ever after an HTTP error (BOINC protocol, account manager RPC); bodies that cannot be a client's
    get the HTTP status that says so.
    """

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response
        self.views: dict[str, Handler] = {}

    def __call__(self, request: HttpRequest) -> HttpResponse:
        path = request.path_info
        rules = rules_of_protocols()
        if rules.is_behind_proxy:
            _take_forwarded_address(request)
        root = rules.roots.get(path)
        if root is None:
            return self._answer_probe(request) if path in PROBES else self.get_response(request)
        started = perf_counter()
        request_id = _request_id(request)
        structlog.contextvars.bind_contextvars(request_id=request_id)
        response = self._answer(request, root)
        elapsed_secs = perf_counter() - started
        error_num = getattr(response, "error_num", 0)
        metrics.count_rpc(path, error_num, elapsed_secs)
        size = len(response.content)
        response.headers["Content-Length"] = str(size)
        log_request(
            {
                "method": request.method,
                "path": path,
                "status": response.status_code,
                "error_num": error_num,
                "ms": round(elapsed_secs * 1000, 1),
                "request_id": request_id,
                "bytes_in": _length(request),
                "bytes_out": size,
                "user_agent": request.META.get("HTTP_USER_AGENT", "")[:USER_AGENT_CHARS],
            }
        )
        return response

    def _answer(self, request: HttpRequest, root: str) -> HttpResponse:
        path = request.path_info
        rules = rules_of_protocols()
        if path in rules.streams:
            return self._view(path)(request)
        limit = rules.body_bytes.get(path, rules.usual_body_bytes)
        try:
            return _refusal(request, root, limit) or _rendered(self._view(path)(request))
        except RequestDataTooBig:
            return protocol_error(root, ERR_XML_PARSE, f"The request is longer than the limit of {limit} bytes.")
        except Exception:
            log.exception("protocol.failed", path=path)
            got_request_exception.send(sender=type(self), request=request)
            return protocol_error(root, ERR_GENERIC, TRY_LATER)

    def _answer_probe(self, request: HttpRequest) -> HttpResponse:
        structlog.contextvars.clear_contextvars()
        if request.method not in ("GET", "HEAD"):
            return HttpResponse(status=405, headers={"Allow": "GET, HEAD"})
        return self._view(request.path_info)(request)

    def _view(self, path: str) -> Handler:
        if path not in self.views:
            self.views[path] = resolve(path).func
        return self.views[path]


def protocol_error(root: str, error_num: int, message: str, status: int = 200) -> HttpResponse:
    """A BOINC error reply, in the element that the protocol's replies have at their root."""
    body = f"<error_num>{error_num}</error_num>\n<error_msg>{escape(message)}</error_msg>\n"
    if root == "scheduler_reply":
        # Here clients know no error numbers; this makes them back off, longer each time.
        body = f'<project_is_down/>\n<message priority="low">{escape(message)}</message>\n'
    body = f"<{root}>\n{body}</{root}>\n"
    response = HttpResponse(body, content_type="text/xml", status=status)
    response.error_num = error_num  # type: ignore[attr-defined]
    return response


def _refusal(request: HttpRequest, root: str, max_bytes: int) -> HttpResponse | None:
    """The reply to a request that no BOINC client sends, or None; reads the whole body."""
    if request.method == "GET":
        return None
    if request.method != "POST":
        response = protocol_error(root, ERR_GENERIC, "Use GET or POST.", 405)
        response.headers["Allow"] = "GET, POST"
        return response
    if "HTTP_TRANSFER_ENCODING" in request.META:
        # The server hands a chunked body on as an empty one.
        return protocol_error(root, ERR_GENERIC, "Send the request with a Content-Length, not in chunks.", 411)
    length = _length(request)
    try:
        if length > max_bytes:
            _read_beginning(request, length, max_bytes)
            return None
        # What HttpRequest.body keeps it in; read here as paths have limits of their own, and without its copies.
        request._body = request.read(length)
        complete = len(request._body) == length
    except UnreadablePostError:
        complete = False
    if complete:
        return None
    return protocol_error(root, ERR_GENERIC, "The request ended before its Content-Length. Please send it again.", 400)


def _read_beginning(request: HttpRequest, length: int, max_bytes: int) -> None:
    """Read what a view with a limit of its own takes of a longer message, and pass over the rest: clients that are
    refused send the same again, for ever. RequestDataTooBig where there is no such limit, or no end.
    """
    if request.path_info not in settings.PROTOCOL_BODY_BYTES or length > settings.PROTOCOL_LONGEST_BYTES:
        raise RequestDataTooBig
    request._body = request.read(max_bytes)
    left = length - len(request._body)
    while left > 0 and (piece := request.read(min(left, 1 << 18))):
        left -= len(piece)
    if left:
        raise UnreadablePostError("the message ended before its Content-Length")


def _length(request: HttpRequest) -> int:
    """The Content-Length; Django takes one that is no number for 0."""
    try:
        return int(request.META.get("CONTENT_LENGTH") or 0)
    except ValueError:
        return 0


def _rendered(response: HttpResponse) -> HttpResponse:
    """Django renders template responses after the view; on the short way that is done here."""
    render = getattr(response, "render", None)
    return render() if callable(render) else response


def _take_forwarded_address(request: HttpRequest) -> None:
    """Behind a proxy, the address is the last one of X-Forwarded-For: the proxy's own word, all others are claims."""
    address = request.META.get("HTTP_X_FORWARDED_FOR", "").rsplit(",", 1)[-1].strip()
    try:
        request.META["REMOTE_ADDR"] = str(ipaddress.ip_address(address))
    except ValueError:
        return


def _request_id(request: HttpRequest) -> str:
    """The trusted proxy's id if it has a sane form, else a random one, which need not be hard to guess."""
    given = request.META.get("HTTP_X_REQUEST_ID") if rules_of_protocols().is_behind_proxy else None
    return given if given and _REQUEST_ID.match(given) else f"{random.getrandbits(64):016x}"


class RequestLogMiddleware:
    """One line per request, with an id that the reply and every other line of the request carry too."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        started = perf_counter()
        request_id = _request_id(request)
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request_id=request_id)
        response = self.get_response(request)
        elapsed_secs = perf_counter() - started
        response.headers["X-Request-ID"] = request_id
        match = request.resolver_match
        view = (match.view_name or match.route or "home") if match else "unknown"
        metrics.count_page(view, response.status_code, elapsed_secs)
        log_request(
            {
                "method": request.method,
                "path": loggable_path(request),
                "status": response.status_code,
                "ms": round(elapsed_secs * 1000, 1),
                "request_id": request_id,
                "bytes_in": _length(request),
                "bytes_out": 0 if response.streaming else len(response.content),
                "user_agent": request.META.get("HTTP_USER_AGENT", "")[:USER_AGENT_CHARS],
            }
        )
        return response


class ContentPolicyMiddleware(CSPMiddleware):
    """The site's strict content security policy, but for the admin, whose templates need a wider one."""

    def get_policy_parts(
        self, request: HttpRequest, response: HttpResponseBase, report_only: bool = False
    ) -> PolicyParts:
        parts = super().get_policy_parts(request, response, report_only)
        match = request.resolver_match
        if match and match.app_name == "admin" and not report_only:
            parts.replace = settings.ADMIN_CONTENT_SECURITY_POLICY
        return parts
