"""Requests to the REST API by a token, and what is in the answers."""

from __future__ import annotations

import json
from typing import Any

from django.test import Client

from portal.models import ApiToken, User
from portal.people.api_tokens import issue_token


def bearer(user: User, *scopes: str) -> dict[str, str]:
    """The header of a token; without scopes it has all."""
    token = issue_token(user, name="test", scopes=scopes or ApiToken.Scope.values, lifetime=None)
    return {"Authorization": f"Bearer {token}"}


def call(method: str, address: str, headers: dict[str, str], body: Any = None, status: int = 200) -> Any:
    """The JSON of the answer, which has this status; None for an empty one. A body that is a text is sent as it is."""
    text = body if isinstance(body, str) else "" if body is None else json.dumps(body)
    reply = Client().generic(method, address, text, "application/json", headers=headers)
    assert reply.status_code == status, reply.content
    if not reply.content:
        return None
    answer = json.loads(reply.content)
    kind = "application/json" if status < 400 else "application/problem+json"
    assert reply.headers["Content-Type"] == kind
    if status >= 400:
        assert {*answer} >= {"type", "title", "status", "detail"} and answer["status"] == status
    return answer


def errors_of(problem: dict[str, Any]) -> dict[str, str]:
    """What problem details say of each field."""
    return {error["field"]: error["detail"] for error in problem["errors"]}


def fits(shown: Any, answered: Any) -> bool:
    """Whether the answer is what the document shows, in which "…" stands for any value."""
    if shown == "…":
        return answered not in (None, "")
    if isinstance(shown, dict) and isinstance(answered, dict):
        return list(shown) == list(answered) and all(fits(value, answered[name]) for name, value in shown.items())
    if isinstance(shown, list) and isinstance(answered, list):
        return len(shown) == len(answered) and all(fits(a, b) for a, b in zip(shown, answered, strict=True))
    return bool(shown == answered)
