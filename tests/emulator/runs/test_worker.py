"""Runs and their worker: taken once, cancelled, ended when they take too long, queued again when they are lost."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django.fixtures import Settings

from emulator.engine.scenario import ScenarioError
from emulator.models import Experiment, Run, RunState
from emulator.runs import experiments, worker
from tests.support.emulator_experiments import begin, carry_out, example, trial


def test_a_message_that_comes_twice_runs_once(signed_in: Client, queue: list[tuple[str, int]]) -> None:
    experiment = begin(signed_in)
    signed_in.post(reverse("experiment", args=[experiment.pk]), trial(experiment))
    carry_out(queue)
    finished_at = Run.objects.get().finished_at
    carry_out(queue)
    assert Run.objects.get().finished_at == finished_at


def test_a_run_that_takes_too_long_is_ended(
    signed_in: Client, queue: list[tuple[str, int]], settings: Settings
) -> None:
    settings.EMULATOR_RUN_SECS_MAX = 1
    experiment = begin(signed_in, "n50_projects")
    signed_in.post(reverse("experiment", args=[experiment.pk]), trial(experiment, days="36000"))
    carry_out(queue)
    run = Run.objects.get()
    assert run.state == RunState.FAILED
    assert "more than 1 s of processor time" in run.fault


def test_a_cancelled_run_stops(
    signed_in: Client, queue: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "POLL_SECS", 0.05)
    experiment = begin(signed_in, "n50_projects")
    signed_in.post(reverse("experiment", args=[experiment.pk]), trial(experiment, days="36000"))
    # As if the owner cancelled while it runs: it looks after a moment.
    report = worker._report_progress

    def cancel_and_report(run_id: int, progress: float) -> None:
        signed_in.post(reverse("experiment_cancel", args=[experiment.pk]))
        report(run_id, progress)

    monkeypatch.setattr(worker, "_report_progress", cancel_and_report)
    carry_out(queue)
    assert Run.objects.get().state == RunState.CANCELLED


def test_a_queued_run_is_cancelled_at_once(signed_in: Client, queue: list[tuple[str, int]]) -> None:
    experiment = begin(signed_in)
    signed_in.post(reverse("experiment", args=[experiment.pk]), trial(experiment))
    signed_in.post(reverse("experiment_cancel", args=[experiment.pk]))
    carry_out(queue)
    assert Run.objects.get().state == RunState.CANCELLED


def test_lost_runs_are_queued_again(signed_in: Client, queue: list[tuple[str, int]]) -> None:
    from datetime import timedelta

    from django.utils import timezone

    experiment = begin(signed_in)
    signed_in.post(reverse("experiment", args=[experiment.pk]), trial(experiment))
    long_ago = timezone.now() - timedelta(hours=1)
    Experiment.objects.update(started_at=long_ago)
    Run.objects.update(state=RunState.RUNNING, heard_of_at=long_ago)
    assert worker.requeue_lost(timezone.now()) == [Run.objects.get().pk]
    assert Run.objects.get().state == RunState.QUEUED


def test_parameters_that_do_not_exist_are_refused() -> None:
    with pytest.raises(ScenarioError, match="turbo"):
        experiments.with_parameters(example(), {"turbo": 1})
