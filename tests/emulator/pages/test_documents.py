"""Scenarios as documents: downloaded, uploaded, and their published schema."""

from __future__ import annotations

import json
import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from emulator.files.scenario_json import from_json, read_document
from emulator.models import Experiment, Run
from portal.models import User
from tests.support.emulator_experiments import begin as begin_experiment
from tests.support.emulator_experiments import carry_out, trial
from tests.support.page_text import text_of


def test_a_result_is_read_again_and_gives_the_same_figures(signed_in: Client, django_user_model: type[User]) -> None:
    experiment = begin_experiment(signed_in)
    page = reverse("experiment", args=[experiment.pk])
    signed_in.post(page, trial(experiment, seed="7", parameter="half_life_days", values="3", days="3"))
    carry_out()
    result = signed_in.get(reverse("emulator_json", args=[experiment.pk, 1])).content
    assert read_document(result).parameters.half_life_days == 3.0

    other = Client()
    other.force_login(django_user_model.objects.create_user(email="other@example.org", password="cobblestone-7"))
    answer = other.post(reverse("emulate_json"), {"document": SimpleUploadedFile("mine.json", result)})
    again = Experiment.objects.exclude(pk=experiment.pk).get()
    assert answer["Location"] == reverse("experiment", args=[again.pk])
    assert (again.title, again.days, again.origin) == ("mine", 3.0, "json")
    form = other.get(answer["Location"]).context["form"]
    posted = {name: form.get_initial_for_field(field, name) for name, field in form.fields.items()}
    other.post(answer["Location"], {name: value for name, value in posted.items() if value not in (None, False)})
    carry_out()
    first, second = Run.objects.order_by("pk")
    assert (second.policy, second.seed, second.parameters) == ("rec", 7, {"half_life_days": 3.0})
    assert (second.figures, second.projects) == (first.figures, first.projects)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"{}", "version: it is missing: this site reads version 1"),
        (b"<xml/>", "the file is not JSON"),
        (b'{"version": 99}', "99 is not known: this site reads version 1"),
        (b" " * (4 * 1024 * 1024 + 1), "the file is larger than 4 MiB"),
    ],
)
def test_a_file_that_cannot_be_read_is_explained(signed_in: Client, content: bytes, said: str) -> None:
    file = SimpleUploadedFile("x.json", content)
    answer = signed_in.post(reverse("emulate_json"), {"document": file}, follow=True)
    assert said in text_of(answer)
    assert not Experiment.objects.exists()


def test_the_saved_scenario_is_downloaded(signed_in: Client) -> None:
    experiment = begin_experiment(signed_in)
    answer = signed_in.get(reverse("scenario_json", args=[experiment.pk]))
    assert read_document(answer.content).scenario == from_json(experiment.scenario)
    assert re.search(r'filename="[\w-]+\.json"', answer["Content-Disposition"])


def test_the_schema_is_published(client: Client) -> None:
    answer = client.get("/emulator/scenario.schema.json")
    assert answer["Content-Type"] == "application/schema+json"
    assert json.loads(answer.content)["$id"].endswith("/emulator/scenario.schema.json")
