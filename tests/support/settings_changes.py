"""The step before a change of credit, as an operator goes through it."""

from __future__ import annotations

from typing import Any

from django.db.models import Model
from django.http import HttpResponse
from django.test import Client

from portal.models import Change
from tests.support.admin_forms import post_form

STEP = "/admin/portal/change/step/"


def to_step(client: Client, row: Model, **fields: Any) -> str:
    """Change the row's form and press "Save"; the address of the step."""
    response = post_form(client, row, **fields)
    assert response.status_code == 302, response.content.decode()
    assert response["Location"].startswith(STEP)
    return str(response["Location"])


def save(client: Client, step: str, reason: str = "a test", **fields: Any) -> HttpResponse:
    return client.post(step, {"do": "save", "reason": reason, **fields})  # type: ignore[return-value]  # it is one


def change_settings(client: Client, row: Model, reason: str = "a test", **fields: Any) -> Change:
    assert save(client, to_step(client, row, **fields), reason).status_code == 302
    change = last_change()
    assert change.reason == reason
    return change


def undo(client: Client, change: Change, reason: str = "it was wrong", **fields: Any) -> HttpResponse:
    """Press "Undo" on the page of a change, give a reason in the step, and save."""
    response = client.post(f"/admin/portal/change/{change.pk}/undo/")
    assert response.status_code == 302
    return save(client, response["Location"], reason, **fields)


def last_change() -> Change:
    found: Change = Change.objects.latest("pk")
    return found
