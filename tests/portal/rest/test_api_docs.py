"""The examples of docs/reference/api.md are run against the site and answer what the document says."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from accounting.engine.states import DayFlag
from credit.models import ValidateState
from portal.models import ApiToken, User
from portal.people.api_tokens import issue_token
from portal.rest.views import DEFAULT_LIMIT, MAX_LIMIT
from tests.support.accounting_factories import credit, make_host, make_note, make_project
from tests.support.credit_factories import make_app, make_success, make_workunit
from tests.support.rest_api import fits

TEXT = (Path(__file__).resolve().parents[3] / "docs" / "reference" / "api.md").read_text()
REQUESTS = re.findall(r"```sh\n(.*?)\n```\n\n```json\n(.*?)\n```", TEXT, re.DOTALL)
PROGRAMS = re.findall(r"```python\n(.*?)\n```", TEXT, re.DOTALL)


@pytest.fixture
def token(db: None, alice: User) -> str:
    """A token for everything; the history is the document's."""
    studio, alpha = make_host(alice, "studio"), make_project("Alpha")
    credit(studio, alpha, "2026-03-02", (1_000_001, 0, 259_346_744, 0, 4, 1), flags=DayFlag.CAPPED)
    credit(studio, alpha, "2026-03-03", (2_500_000, 0, 300_000_000, 0, 2, 0))
    make_note(studio, "reset", "2026-03-02", project=alpha)
    validated = {"validate_state": ValidateState.VALID, "granted_credit": 2.5, "claimed_credit": 2.6}
    make_success(make_workunit(make_app(), name="fold_1"), studio, **validated)
    return issue_token(alice, name="docs", scopes=ApiToken.Scope.values, lifetime=None)


def test_there_are_examples() -> None:
    assert len(REQUESTS) == TEXT.count("```sh") == TEXT.count("```json") == 7
    assert len(PROGRAMS) == TEXT.count("```python") == 1


@pytest.mark.parametrize(("command", "shown"), REQUESTS)
def test_a_request_is_answered_as_shown(token: str, command: str, shown: str) -> None:
    words = shlex.split(command.replace("$TOKEN", token).replace("$SITE", ""))
    assert words[:3] == ["curl", "-s", "-H"]
    name, _, value = words[3].partition(": ")
    reply = Client().get(words[4], headers={name: value})
    assert fits(json.loads(shown), json.loads(reply.content)), reply.content.decode()


@pytest.mark.system
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_curl_itself_gets_the_answer(transactional_db: None, live_server: LiveServer, token: str) -> None:
    command, shown = REQUESTS[0]
    words = shlex.split(command.replace("$TOKEN", token).replace("$SITE", live_server.url))
    run = subprocess.run([*words, "--max-time", "20"], capture_output=True, check=True)
    assert fits(json.loads(shown), json.loads(run.stdout)), run.stdout.decode()


def test_the_program_reads_all_pages(
    transactional_db: None, live_server: LiveServer, token: str, settings: Settings
) -> None:
    settings.SITE_URL = f"{live_server.url}/"
    names: dict[str, Any] = {"SITE": live_server.url, "TOKEN": token}
    exec(PROGRAMS[0], names)
    assert [row["day"] for row in names["rows"]] == ["2026-03-02", "2026-03-03"]


def test_scopes_flags_and_limits_are_documented() -> None:
    rows = set(re.findall(r"^\| `([^`]+)` \|", TEXT, re.M))
    assert rows == {*ApiToken.Scope.values, *(name.lower() for name in DayFlag.__members__)}
    assert f"(1 to {MAX_LIMIT}; {DEFAULT_LIMIT} by default)" in TEXT
