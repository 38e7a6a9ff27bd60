"""The API's page: its description in words, which anyone signed in can try out."""

from __future__ import annotations

from functools import cache

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import get_language
from django.views.decorators.http import require_safe
from drf_spectacular.generators import SchemaGenerator

from portal.rest import VERSION
from portal.rest.description import Operation, Schema, groups_of


@require_safe
def docs(request: HttpRequest) -> HttpResponse:
    """Show the API's description, which anyone signed in can try out."""
    context = {"groups": _groups(get_language() or ""), "schema_url": reverse("api_schema"), "version": VERSION}
    return render(request, "portal/api_docs.html", context)


@cache
def _groups(_language: str) -> dict[str, list[Operation]]:
    """The operations, which are the same for everybody; cached, as finding them takes a fifth of a second."""
    description: Schema = SchemaGenerator().get_schema(public=True)
    return groups_of(description)
