"""Generated requests, sane and insane, against every address of the REST API: no server error, replies as described."""

from __future__ import annotations

import os
from typing import Any

import pytest
import schemathesis
from django.core.handlers.wsgi import WSGIHandler
from django.db import connection
from hypothesis import HealthCheck, settings
from pytest_django import Settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    missing_required_header,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from emulator.files.presets import preset
from emulator.files.scenario_json import Document, document_json
from portal.models import User
from scheduler.lifecycle import assimilator
from scheduler.submission.submit import submit
from tests.support.accounting_factories import credit, make_host, make_note, make_project
from tests.support.credit_factories import NOON, make_app
from tests.support.finished_jobs import DEFAULTS, finish
from tests.support.rest_api import bearer, call

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    response_schema_conformance,
    response_headers_conformance,
    content_type_conformance,
    negative_data_rejection,
    missing_required_header,
    unsupported_method,
]
EXAMPLES = int(os.environ.get("API_EXAMPLES", "10"))


# The API as it describes itself; that needs no database.
schema = schemathesis.openapi.from_wsgi("/api/v1/schema/", WSGIHandler())


@pytest.fixture
def headers(db: None, submitter: User, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The token of somebody who may do everything, and has something of everything."""
    settings.API_REQUESTS_PER_MINUTE = 1_000_000
    # As Django's own test client does: the test's transaction is one of this connection.
    monkeypatch.setattr(connection, "close_if_unusable_or_obsolete", lambda: None)
    studio, alpha = make_host(submitter, "studio"), make_project("Alpha")
    credit(studio, alpha, "2026-03-02", (1, 2, 3, 4, 5, 6), flags=63)
    make_note(studio, "dropped", "2026-03-02", detail="cpu_ec", amount=5)
    batch = submit(make_app(), DEFAULTS, [{}] * 3, owner=submitter, now=NOON)[0]
    finish(batch, studio)
    assimilator.run(NOON)
    token = bearer(submitter)
    document = document_json(Document(preset("s4_shares_60_30_10").scenario, 2.0))
    call("POST", "/api/v1/experiments/", token, document, 201)
    # The client that calls the WSGI application itself does not unpack answers.
    return {**token, "Accept-Encoding": "identity"}


@schema.parametrize()
@settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
def test_no_request_brings_a_server_error(case: Any, headers: dict[str, str]) -> None:
    case.call_and_validate(headers=headers, checks=CHECKS)
