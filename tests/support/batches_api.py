"""Requests of the REST API for batches."""

from __future__ import annotations

import json
from typing import Any

from django.test import Client

from portal.models import User
from portal.people.api_tokens import issue_token
from tests.support.finished_jobs import DEFAULTS

API = "/api/v1/batches/"
SUBMISSION: dict[str, Any] = {"app": "alpine", "name": "Pairs", "defaults": DEFAULTS, "jobs": [{}, {}]}


def bearer(user: User, scope: str = "write:jobs") -> dict[str, str]:
    return {"Authorization": f"Bearer {issue_token(user, name='test', scopes=[scope], lifetime=None)}"}


def call(method: str, address: str, headers: dict[str, str], body: Any = None, status: int = 200) -> Any:
    reply = Client().generic(method, address, json.dumps(body) if body else "", "application/json", headers=headers)
    assert reply.status_code == status, reply.content
    return json.loads(reply.content)
