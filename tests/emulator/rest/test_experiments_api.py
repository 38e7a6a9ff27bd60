"""Experiments by the REST API: from a document to results; who may do what; and the documented examples."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from pytest_django.fixtures import Settings
from pytest_django.live_server_helper import LiveServer

from emulator.files.presets import preset
from emulator.files.scenario_json import Document, Parameters, document_json, from_document, read_document
from emulator.models import Experiment, Run
from portal.models import User
from tests.support.emulator_experiments import carry_out
from tests.support.rest_api import bearer, call, errors_of, fits

pytestmark = pytest.mark.django_db
API = "/api/v1/experiments/"
TEXT = (Path(__file__).resolve().parents[3] / "docs" / "how-to" / "emulator-scenarios.md").read_text()
JSON_EXAMPLES = [json.loads(text) for text in re.findall(r"```json\n(.*?)\n```", TEXT, re.DOTALL)]
PROGRAMS = re.findall(r"```sh\n(.*?)\n```", TEXT, re.DOTALL)
SMALL = JSON_EXAMPLES[0]


@pytest.fixture
def headers(alice: User) -> dict[str, str]:
    return bearer(alice)


def test_an_experiment_from_its_document_to_its_results(headers: dict[str, str], alice: User) -> None:
    document = Document(preset("s4_shares_60_30_10").scenario, 2.0, parameters=Parameters(half_life_days=4.0), seed=3)
    body = {**document_json(document), "title": "Mine", "variants": [{}, {"policy": "debt", "label": "2005"}]}
    made = call("POST", API, headers, body, 201)
    assert [(run["variant"], run["policy"], run["parameters"], run["seed"]) for run in made["runs"]] == [
        ("Recent estimated credit, half_life_days 4.0", "rec", {"half_life_days": 4.0}, 3),
        ("2005", "debt", {"half_life_days": 4.0}, 3),
    ]
    assert made["is_finished"] is False
    assert Experiment.objects.get().owner == alice
    assert carry_out() == 2
    done = call("GET", f"{API}{made['id']}/", headers)
    assert done["is_finished"] is True
    assert call("GET", API, headers) == {"next": None, "results": [done]}
    result = call("GET", done["runs"][0]["result_url"].removeprefix(settings.SITE_URL.rstrip("/")), headers)
    assert result["figures_of_merit"] == done["runs"][0]["figures_of_merit"] == Run.objects.get(number=1).figures
    # A result is a document, of which the same run follows.
    assert from_document(result) == document
    again = call("POST", API, headers, result, 201)
    carry_out()
    repeated = call("GET", f"{API}{again['id']}/", headers)
    assert repeated["runs"][0]["figures_of_merit"] == result["figures_of_merit"]
    assert call("DELETE", f"{API}{made['id']}/", headers, None, 204) is None
    assert call("GET", f"{API}{made['id']}/", headers, None, 404)


def test_a_repeated_request_does_no_harm(headers: dict[str, str]) -> None:
    body = {**SMALL, "request_id": "monday"}
    made = call("POST", API, headers, body, 201)
    assert call("POST", API, headers, body, 200) == made
    assert Run.objects.count() == 1
    refused = call("POST", API, headers, {**body, "days": 3}, 409)
    assert errors_of(refused) == {"request_id": "it was used for another scenario"}
    # Without one, two requests are two experiments.
    ids = [call("POST", API, headers, SMALL, 201)["id"] for _ in range(2)]
    assert ids[0] != ids[1]


def test_everybody_has_their_own(headers: dict[str, str], django_user_model: type[User]) -> None:
    made = call("POST", API, headers, SMALL, 201)
    carry_out()
    bob = bearer(django_user_model.objects.create_user(email="bob@example.org", password="cobblestone-7"))
    assert call("GET", API, bob)["results"] == []
    for address in (f"{API}{made['id']}/", f"{API}{made['id']}/runs/1/"):
        call("GET", address, bob, None, 404)
    call("DELETE", f"{API}{made['id']}/", bob, None, 404)
    assert Experiment.objects.count() == 1


def test_a_token_needs_the_scope(alice: User) -> None:
    assert "no scope write:emulator" in call("POST", API, bearer(alice, "read:hosts"), SMALL, 403)["detail"]
    call("GET", API, {}, None, 401)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"version": 2}, "version"),
        ({"scenario": {}}, "scenario.host"),
        ({"days": 40_000}, "days"),
        ({"surplus": 1}, "document"),
        ({"title": "x" * 101}, "title"),
        ({"title": "a\0"}, "title"),
        ({"request_id": 7}, "request_id"),
        ({"seeds": []}, "seeds"),
        ({"seeds": [1.5]}, "seeds"),
        ({"seeds": list(range(11))}, "seeds"),
        ({"variants": []}, "variants"),
        ({"variants": [{}] * 9}, "variants"),
        ({"variants": [{}, {}]}, "variants"),
        ({"variants": [{"policy": "best"}]}, "variants[0].policy"),
        ({"variants": [{"parameters": {"half_life_days": 0}}]}, "variants[0].parameters.half_life_days"),
        ({"variants": [{"days": 3}]}, "variants[0]"),
        ({"variants": [{"label": str(n)} for n in range(8)], "seeds": list(range(6))}, "seeds"),
    ],
)
def test_what_is_wrong_is_said_with_its_field(headers: dict[str, str], change: dict[str, Any], field: str) -> None:
    assert list(errors_of(call("POST", API, headers, {**SMALL, **change}, 400))) == [field]
    assert not Experiment.objects.exists()


@pytest.mark.parametrize("body", ["", "{", "[" * 100_000, "[]", "1" * 5000])
def test_a_body_that_is_no_document_is_refused(headers: dict[str, str], body: str) -> None:
    call("POST", API, headers, body, 400)


def test_a_large_body_is_not_read(headers: dict[str, str]) -> None:
    call("POST", API, headers, " " * (4 * 1024 * 1024 + 1), 413)


def test_quotas_hold(headers: dict[str, str], settings: Settings) -> None:
    settings.EMULATOR_EXPERIMENTS_MAX = 1
    call("POST", API, headers, SMALL, 201)
    assert "which is the limit" in call("POST", API, headers, SMALL, 409)["detail"]
    settings.EMULATOR_EXPERIMENTS_MAX, settings.EMULATOR_RUNS_MAX = 10, 1
    assert "the limit is 1" in call("POST", API, headers, SMALL, 409)["detail"]
    # Nothing half made is left.
    assert Experiment.objects.count() == 1


def test_a_page_of_experiments_takes_few_statements(headers: dict[str, str], django_assert_num_queries: Any) -> None:
    for _ in range(3):
        call("POST", API, headers, {**SMALL, "seeds": [1, 2]}, 201)
    call("GET", API, headers)
    with django_assert_num_queries(3):  # the token, the experiments, their runs
        call("GET", API, headers)


def test_the_documented_example_is_a_document() -> None:
    assert read_document(json.dumps(SMALL).encode()).days == 2


def test_the_documented_requests_are_answered_as_shown(
    transactional_db: None, live_server: LiveServer, alice: User, tmp_path: Path
) -> None:
    assert (len(JSON_EXAMPLES), len(PROGRAMS)) == (3, 3)
    tmp_path.joinpath("scenario.json").write_text(json.dumps(SMALL))
    # What the program jq adds is in the text; it need not be installed.
    match = re.search(r"jq '\. \+ (\{.*?\})' ", PROGRAMS[0], re.DOTALL)
    assert match is not None
    added = json.loads(match[1])
    tmp_path.joinpath("request.json").write_text(json.dumps(SMALL | added))
    token = bearer(alice)["Authorization"].removeprefix("Bearer ")
    env = {"SITE": live_server.url, "TOKEN": token, "ID": "", "PATH": "/usr/bin:/bin"}

    def answer(program: str) -> str:
        script = program[program.index("curl") :]
        return subprocess.run(
            ["sh", "-c", script], cwd=tmp_path, env=env, capture_output=True, check=True, timeout=30, text=True
        ).stdout

    made = json.loads(answer(PROGRAMS[0]))
    assert fits(JSON_EXAMPLES[1], made), made
    carry_out()
    env["ID"] = str(made["id"])
    done = json.loads(answer(PROGRAMS[1]))
    assert fits(JSON_EXAMPLES[2], done), done
    assert answer(PROGRAMS[2]) == ""
    assert not Experiment.objects.exists()
