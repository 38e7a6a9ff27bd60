"""The admin's forms as a browser sends them: every field as the page shows it, but for those that a test changes."""

from __future__ import annotations

from typing import Any

from django.db.models import Model
from django.http import HttpResponse
from django.test import Client


def form_path(row: Model) -> str:
    return f"/admin/{row._meta.app_label}/{row._meta.model_name}/{row.pk}/change/"


def form_values(client: Client, row: Model) -> dict[str, Any]:
    """What the row's form would send as it stands, with its inline rows."""
    response = client.get(form_path(row))
    assert response.status_code == 200
    adminform = response.context["adminform"]
    forms = [adminform.form]
    for inline in response.context["inline_admin_formsets"]:
        forms += [inline.formset.management_form, *inline.formset.forms]
    values = {form.add_prefix(name): form[name].value() for form in forms for name in form.fields}
    return {name: value for name, value in values.items() if value is not None and value is not False}


def post_form(client: Client, row: Model, values: dict[str, Any] | None = None, **changed: Any) -> HttpResponse:
    sent = {**(form_values(client, row) if values is None else values), **changed}
    return client.post(form_path(row), sent)  # type: ignore[return-value]  # the test client's response is one
