"""The examples open with their finished run, for anybody."""

from __future__ import annotations

import json
import re

import pytest
from django.test import Client
from django.urls import reverse

from emulator.files.presets import PRESETS
from emulator.files.reported_cases import REPORTED
from emulator.models import Experiment, Run
from emulator.pages.texts import preset_texts
from emulator.runs.examples import stored_runs
from tests.support.page_text import text_of

pytestmark = pytest.mark.django_db

CASE, ALONE = "boinc-5589", "document-two-processors"


def test_a_stranger_sees_the_finished_run_of_every_example_in_the_list(client: Client) -> None:
    page = client.get(reverse("emulator")).content.decode()
    assert [row.key for row in PRESETS if reverse("emulator_example", args=[row.key]) not in page] == []
    assert len(REPORTED) == 19


@pytest.mark.parametrize("key", [CASE, ALONE])
def test_a_stranger_opens_an_example_with_all_that_a_run_has(client: Client, key: str) -> None:
    nruns = len(stored_runs(key))
    address = f"example-{key}"
    text = text_of(client.get(reverse("emulator_example", args=[key])))
    assert dict((row["key"], row["shows"]) for row in preset_texts.offered())[key] in text
    assert "you need an account" in text and "The answer" in text
    for number in range(1, nruns + 1):
        assert "Target and actual shares" in text_of(client.get(reverse("emulator_run", args=[address, number])))
        saved = json.loads(client.get(reverse("emulator_json", args=[address, number])).content)
        assert saved["figures_of_merit"] == stored_runs(key)[number - 1].figures
        csv = b"".join(client.get(reverse("emulator_csv", args=[address, number, "blocks"])))
        assert csv.count(b"\n") > 10
        window = client.get(reverse("emulator_window", args=[address, number]), {"from": 0, "to": 86_400})
        assert window.json()["blocks"]
        assert client.get(reverse("emulator_table", args=[address, number, "decisions"])).status_code == 200
        assert "Task 3" in text_of(client.get(reverse("emulator_job", args=[address, number]), {"job": 3}))
    assert client.get(reverse("emulator_run", args=[address, nruns + 1])).status_code == 404
    assert client.get(reverse("emulator_timelines", args=[address])).status_code == 200
    assert not Experiment.objects.exists() and not Run.objects.exists()


def test_a_reported_case_names_its_issue_and_both_policies(client: Client) -> None:
    page = client.get(reverse("emulator_example", args=[CASE]))
    assert 'href="https://github.com/BOINC/boinc/issues/5589"' in page.content.decode()
    assert re.search("As implemented in BOINC.*Recent estimated credit", text_of(page))


def test_a_decision_of_an_example_keeps_no_simulation_and_says_so(client: Client) -> None:
    page = client.get(reverse("emulator_decision", args=[f"example-{CASE}", 1, 0]))
    assert "keeps no simulations" in text_of(page)


def test_with_an_account_an_example_can_be_changed_and_run(signed_in: Client) -> None:
    page = signed_in.get(reverse("emulator_example", args=[CASE])).content.decode()
    assert f'action="{reverse("emulate_preset", args=[CASE])}"' in page
    signed_in.post(reverse("emulate_preset", args=[CASE]))
    assert Experiment.objects.get().origin == f"example:{CASE}"
