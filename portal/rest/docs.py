"""The page of the API: its description in words, to be tried out by anyone who is signed in."""

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
    """The API's description, to be tried out by anyone who is signed in."""
    context = {"groups": _groups(get_language() or ""), "schema_url": reverse("api_schema"), "version": VERSION}
    return render(request, "portal/api_docs.html", context)


@cache
def _groups(_language: str) -> dict[str, list[Operation]]:
    """The operations, which are the same for everybody; to find them takes a fifth of a second."""
    description: Schema = SchemaGenerator().get_schema(public=True)
    return groups_of(description)
