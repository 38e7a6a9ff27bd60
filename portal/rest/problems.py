"""Errors of the REST API in one form, wherever they come from: problem details (RFC 9457)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from django.core.exceptions import SuspiciousOperation
from django.http import Http404, HttpRequest, HttpResponseBase, HttpResponsePermanentRedirect, JsonResponse
from django.urls import Resolver404, resolve
from django.views.decorators.csrf import csrf_exempt
from rest_framework.exceptions import APIException, NotFound, ParseError, Throttled
from rest_framework.response import Response
from rest_framework.views import exception_handler

CONTENT_TYPE: Final = "application/problem+json"
QUOTA_EXCEEDED: Final = "https://iana.org/assignments/http-problem-types#quota-exceeded"
QUOTA: Final = "minute"
"""The name of the limit on requests, in header fields and in the problem of exceeding it."""
PATHS: Final = re.compile(r"/+api(/|$)")
_NOT_CACHED: Final = {"Cache-Control": "private, no-store"}


class Conflict(APIException):
    """The request contradicts the present state."""

    status_code = HTTPStatus.CONFLICT


class BodyTooLong(APIException):
    """A body beyond its address's limit, which is not read."""

    status_code = HTTPStatus.REQUEST_ENTITY_TOO_LARGE


def is_asked(request: HttpRequest) -> bool:
    """Whether the request is to the API, and is answered in a form for programs."""
    return PATHS.match(request.path_info) is not None


def problem_reply(status: int, detail: str) -> JsonResponse:
    """The answer outside of the API's views."""
    return JsonResponse(_problem(status, detail), status=status, content_type=CONTENT_TYPE, headers=_NOT_CACHED)


def handle(error: Exception, context: dict[str, Any]) -> Response | None:
    """The answer to an error in a view; None for a fault of ours, and for errors that others answer."""
    if isinstance(error, SuspiciousOperation):
        error = ParseError("The request cannot be read.")
    if isinstance(error, Http404):
        error = NotFound("There is nothing at this address, or it is not yours.")
    response = exception_handler(error, context)
    if response is None:
        return None
    if isinstance(error, Throttled):
        members = {"type": QUOTA_EXCEEDED, "violated-policies": [QUOTA]}
        response.data = _problem(response.status_code, "Too many requests.") | members
    else:
        response.data = _problem_of(response.status_code, response.data)
    response.content_type = CONTENT_TYPE
    return response


@csrf_exempt
def unknown_address(request: HttpRequest) -> HttpResponseBase:
    """Answer a program that asks for an unknown address below /api/. One missing slash is no error."""
    path = request.path_info
    if not path.endswith("/") and _is_known(f"{path}/"):
        address = request.get_full_path(force_append_slash=True)
        return HttpResponsePermanentRedirect(address, preserve_request=True, headers=_NOT_CACHED)
    return problem_reply(404, "There is no such address. All are listed at /api/v1/.")


def _is_known(path: str) -> bool:
    try:
        return resolve(path).func is not unknown_address
    except Resolver404:
        return False


def _problem(status: int, detail: str) -> dict[str, Any]:
    return {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail}


def _problem_of(status: int, data: Any) -> dict[str, Any]:
    if isinstance(data, dict) and isinstance(data.get("detail"), str):
        return _problem(status, str(data["detail"]))
    errors = [{"field": field, "detail": detail} for field, detail in _errors(data)]
    detail = " ".join(f"{error['field']}: {error['detail']}" for error in errors[:1])
    more = f" And {len(errors) - 1} more." if len(errors) > 1 else ""
    return _problem(status, f"{detail}{more}") | {"errors": errors}


def _errors(data: Any, field: str = "") -> Iterator[tuple[str, str]]:
    """Yield each message with the path of its value, following the serializers' nesting of fields and lists."""
    if isinstance(data, Mapping):
        for name, inside in data.items():
            if name == "non_field_errors":
                yield from _errors(inside, field)
            elif isinstance(name, int):
                yield from _errors(inside, f"{field}[{name}]")
            else:
                yield from _errors(inside, f"{field}.{name}" if field else str(name))
    elif isinstance(data, Sequence) and not isinstance(data, str):
        for place, inside in enumerate(data):
            yield from _errors(inside, field if isinstance(inside, str) else f"{field}[{place}]")
    else:
        yield field, str(data)
