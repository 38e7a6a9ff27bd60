"""Additions to the API's description (OpenAPI 3): what all views have in common, and do not say themselves."""

from __future__ import annotations

from typing import Any, Final

from portal.rest.problems import CONTENT_TYPE
from portal.sign_in.throttle import API_WINDOW_SECS

_ALL: Final = {
    "400": "A parameter or field is unknown, missing or has an impossible value, or the body is not JSON.",
    "401": "The token is missing, or no longer valid.",
    "403": "The token lacks the scope, or the account the right.",
    "406": "The Accept header excludes JSON.",
    "429": "There were too many requests.",
    "503": "The database or the storage cannot be reached; nothing was changed.",
}
_OF_ONE: Final = {"404": "Nothing has this id, or it belongs to somebody else."}
_OF_BODIES: Final = {
    "413": "The body is too long.",
    "415": "The Content-Type is not JSON.",
}
_PROBLEM: Final = {"$ref": "#/components/schemas/Problem"}
_FIELD_PROBLEM: Final = {
    "type": "object",
    "description": "What is wrong with one value.",
    "properties": {
        "field": {"type": "string", "description": "The parameter or field, such as `jobs[17].priority`."},
        "detail": {"type": "string"},
    },
    "required": ["field", "detail"],
}
_PROBLEM_DETAILS: Final = {
    "type": "object",
    "description": "Problem details (RFC 9457).",
    "properties": {
        "type": {"type": "string", "description": "`about:blank`, or the address that stands for the problem."},
        "title": {"type": "string", "description": "The status in words."},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What is wrong, in a sentence."},
        "errors": {
            "type": "array",
            "items": {"$ref": "#/components/schemas/FieldProblem"},
            "description": "Each refused value.",
        },
        "violated-policies": {"type": "array", "items": {"type": "string"}, "description": "The limit, for 429."},
    },
    "required": ["type", "title", "status", "detail"],
}
_HEADERS: Final[dict[str, dict[str, Any]]] = {
    "RateLimit-Policy": {
        "schema": {"type": "string", "example": f'"minute";q=120;w={API_WINDOW_SECS}'},
        "description": "The limit: q requests in w seconds.",
    },
    "RateLimit": {
        "schema": {"type": "string", "example": '"minute";r=117;t=42'},
        "description": "r requests remain of it, and after t seconds there are more.",
    },
    "ETag": {
        "schema": {"type": "string"},
        "description": "Send it as If-None-Match: the answer is 304, without a body, for as long as nothing changes.",
    },
    "Retry-After": {"schema": {"type": "integer"}, "description": "Seconds to wait."},
}


def add_common(result: dict[str, Any], generator: Any, request: Any, public: bool) -> dict[str, Any]:
    """Add problems and header fields to each operation; a hook of drf-spectacular."""
    result["components"]["headers"] = _HEADERS
    result["components"]["schemas"] |= {"FieldProblem": _FIELD_PROBLEM, "Problem": _PROBLEM_DETAILS}
    for path, methods in result["paths"].items():
        for method, operation in methods.items():
            responses = operation["responses"]
            statuses = _ALL | (_OF_ONE if "{" in path else {}) | (_OF_BODIES if "requestBody" in operation else {})
            responses |= {status: _problem(status, about) for status, about in statuses.items()}
            if "409" in responses:
                responses["409"] = _problem("409", responses["409"].get("description") or "Conflict.")
            for status, response in responses.items():
                if status < "300":
                    response["headers"] = _named("RateLimit-Policy", "RateLimit")
                    if method == "get":
                        response["headers"] |= _named("ETag")
            if method == "get":
                responses["412"] = _problem("412", "It does not match If-Match.")
                responses["304"] = {"description": "It matches If-None-Match.", "headers": _named("ETag")}
            operation["responses"] = dict(sorted(responses.items()))
    return result


def _problem(status: str, about: str) -> dict[str, Any]:
    response: dict[str, Any] = {"description": about, "content": {CONTENT_TYPE: {"schema": _PROBLEM}}}
    if status in ("429", "503"):
        response["headers"] = _named("Retry-After")
    return response


def _named(*names: str) -> dict[str, Any]:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}
