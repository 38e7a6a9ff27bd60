"""Generated requests, sane and insane, against every address of the REST API: no server error, replies as described."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from django.core.handlers.wsgi import WSGIHandler
from hypothesis import HealthCheck, settings
from pytest_django import Settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    unsupported_method,
)

from portal.models import User
from tests.accounting.rest.test_rest import bearer
from tests.support.accounting_factories import credit, make_host, make_note, make_project

CHECKS = [not_a_server_error, response_schema_conformance, content_type_conformance, unsupported_method]


# The API as it describes itself; that needs no database.
schema = schemathesis.openapi.from_wsgi("/api/v1/schema/", WSGIHandler())


@pytest.fixture
def headers(transactional_db: None, alice: User, settings: Settings) -> dict[str, str]:
    """The token of a volunteer who has something of everything."""
    settings.API_REQUESTS_PER_MINUTE = 1_000_000
    studio, alpha = make_host(alice, "studio"), make_project("Alpha")
    credit(studio, alpha, "2026-03-02", (1, 2, 3, 4, 5, 6), flags=63)
    make_note(studio, "dropped", "2026-03-02", detail="cpu_ec", amount=5)
    # The client that calls the WSGI application itself does not unpack answers.
    return {**bearer(alice), "Accept-Encoding": "identity"}


@schema.parametrize()
@settings(max_examples=10, deadline=None, database=None, suppress_health_check=list(HealthCheck))
def test_no_request_brings_a_server_error(case: Any, headers: dict[str, str]) -> None:
    case.call_and_validate(headers=headers, checks=CHECKS)
