"""The page of the API says of each address what it takes and what it answers, in words."""

from __future__ import annotations

import pytest
from django.test import Client

from portal.models import User
from portal.rest.description import Operation, Value, groups_of
from tests.support.page_text import text_of

DESCRIPTION = {
    "paths": {
        "/things/{id}/": {
            "get": {
                "operationId": "things_list",
                "tags": ["things"],
                "description": "All things.",
                "parameters": [
                    {"in": "path", "name": "id", "required": True, "schema": {"type": "integer"}},
                    {
                        "in": "query",
                        "name": "limit",
                        "description": "Results per page.",
                        "schema": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100},
                    },
                    {
                        "in": "query",
                        "name": "by",
                        "description": "Split them.\n\n* `none` - none",
                        "schema": {"enum": ["none", "host"], "type": "string"},
                    },
                ],
                "responses": {
                    "200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Page"}}}}
                },
            }
        }
    },
    "components": {
        "schemas": {
            "Page": {
                "type": "object",
                "required": ["results"],
                "properties": {"results": {"type": "array", "items": {"$ref": "#/components/schemas/Thing"}}},
            },
            "Thing": {
                "type": "object",
                "properties": {"day": {"type": "string", "format": "date", "nullable": True, "description": "UTC."}},
            },
        }
    },
}


@pytest.fixture
def operation() -> Operation:
    return groups_of(DESCRIPTION)["things"][0]


def test_limits_defaults_and_choices_are_said_in_words(operation: Operation) -> None:
    assert [(value.name, value.kind, value.about) for value in operation.parameters] == [
        ("id", "whole number", ""),
        ("limit", "whole number, 1 to 1000; 100 if left out", "Results per page."),
        ("by", "one of none, host", "Split them."),
    ]
    assert operation.parameters[0].is_required and operation.parameters[0].place == "path"
    assert operation.parameters[2].options == ("none", "host")


def test_fields_of_lists_have_the_name_of_both(operation: Operation) -> None:
    assert operation.fields == [
        Value("results", "list: object", "", is_required=True),
        Value("results[].day", "date, such as 2026-03-02, or null", "UTC."),
    ]


def test_the_page_has_every_address_and_forms_only_for_who_is_signed_in(client: Client, alice: User) -> None:
    page = client.get("/api/v1/")
    for address in ("/api/v1/days/", "/api/v1/sums/", "/api/v1/hosts/{id}/", "/api/v1/projects/", "/api/v1/notes/"):
        assert address in text_of(page)
    assert "data-try" not in page.content.decode()
    client.force_login(alice)
    assert 'data-try="/api/v1/hosts/{id}/"' in client.get("/api/v1/").content.decode()
