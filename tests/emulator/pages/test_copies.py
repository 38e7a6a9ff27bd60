"""Shared experiments can be copied."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from emulator.engine.scenario import StartJob
from emulator.files.presets import two_processors_75_25
from emulator.files.scenario_json import from_json
from emulator.models import Experiment, Run, RunState
from emulator.runs import experiments
from emulator.runs.variants import Variant
from portal.languages.messages import Message
from portal.models import User
from tests.support.emulator_experiments import carry_out
from tests.support.page_text import text_of

DAY_SECS = 86_400.0


@pytest.fixture
def shared(alice: User) -> Experiment:
    """An experiment of Alice's that failed, shared with a link."""
    found = experiments.create(alice, "Why is B late?", "", two_processors_75_25(), 10)
    Run.objects.create(
        experiment=found, number=1, variant="v", policy="rec", state=RunState.FAILED, fault=Message("run_site_fault")
    )
    Experiment.objects.filter(pk=found.pk).update(share_token="f" * 32, started_at=timezone.now())
    found.refresh_from_db()
    return found


@pytest.fixture
def bobs(bob: User) -> Client:
    client = Client()
    client.force_login(bob)
    return client


def test_a_copy_of_a_shared_experiment_is_ones_own_and_says_where_it_is_from(
    bobs: Client, bob: User, signed_in: Client, shared: Experiment
) -> None:
    answer = bobs.post(reverse("experiment_fork", args=[shared.share_token]))
    copy = Experiment.objects.get(owner=bob)
    assert answer["Location"] == reverse("experiment", args=[copy.pk])
    assert (copy.forked_from, copy.started_at, copy.share_token) == (shared, None, None)
    assert from_json(copy.scenario) == from_json(shared.scenario)
    assert "A copy of a shared experiment: Why is B late?" in text_of(bobs.get(answer["Location"]))
    assert "It was copied once." in text_of(signed_in.get(reverse("experiment", args=[shared.pk])))
    link = f"/emulator/shared/{shared.share_token}/"
    assert link in signed_in.get(reverse("experiment", args=[shared.pk])).content.decode()
    experiments.unshare(shared)
    assert "/emulator/shared/" not in signed_in.get(reverse("experiment", args=[shared.pk])).content.decode()
    assert "Why is B late? Why" not in text_of(bobs.get(answer["Location"]))
    assert "A copy of a shared" not in text_of(bobs.get(answer["Location"]))
    experiments.delete(shared)
    copy.refresh_from_db()
    assert copy.forked_from is None


def test_ones_own_copy_says_nothing_of_the_kind(signed_in: Client, shared: Experiment) -> None:
    signed_in.post(reverse("experiment_change", args=[shared.pk]))
    assert Experiment.objects.exclude(pk=shared.pk).get().forked_from is None


def test_who_has_the_link_learns_no_name_of_the_computer_or_of_its_tasks(bobs: Client, bob: User, alice: User) -> None:
    job = StartJob("A", "a", 1e12, 1e12, 60.0, name="wu_of_alice_1")
    base = two_processors_75_25()
    scenario = replace(base, host=replace(base.host, name="alices-laptop"), jobs=(job,))
    found = experiments.create(alice, "Why is B late?", "computer:1", scenario, 1)
    experiments.start(
        found, scenario, title=found.title, days=1, variants=[Variant("v", "rec", False, {}, None)], seeds=[1],
        parameter="", now=timezone.now(),
    )  # fmt: skip
    carry_out()
    token = experiments.share(found)
    pages = [
        reverse("experiment_shared", args=[token]),
        reverse("emulator_run", args=[token, 1]),
        reverse("emulator_json", args=[token, 1]),
        *(reverse("emulator_csv", args=[token, 1, what]) for what in ("blocks", "decisions", "misses", "rpcs")),
    ]
    for page in pages:
        answer = bobs.get(page)
        body = b"".join(answer) if answer.streaming else answer.content
        assert answer.status_code == 200 and not re.search(rb"wu_of_alice|laptop", body), page
    assert "task 0 of A is finished" in text_of(bobs.get(pages[0]))
    bobs.post(reverse("experiment_fork", args=[token]))
    assert from_json(Experiment.objects.get(owner=bob).scenario).jobs[0].name == ""
    found.refresh_from_db()
    assert from_json(found.scenario).jobs[0].name == "wu_of_alice_1"
