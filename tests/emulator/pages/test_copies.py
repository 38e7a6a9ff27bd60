"""Shared experiments can be copied."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from emulator.files.presets import two_processors_75_25
from emulator.files.scenario_json import from_json
from emulator.models import Experiment, Run, RunState
from emulator.runs import experiments
from portal.languages.messages import Message
from portal.models import User
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
