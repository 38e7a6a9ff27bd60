"""Runs and their worker: taken once, cancelled, ended when they take too long, queued again when they are lost."""

from __future__ import annotations

from datetime import timedelta
from unittest.mock import Mock

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db.models import F
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django.fixtures import Settings

from emulator.files.presets import FOLDER
from emulator.models import Experiment, Run, RunState
from emulator.runs import experiments, worker
from portal.models import RequestedWork
from portal.requested_work import queue
from tests.support.emulator_experiments import begin, carry_out, trial

pytestmark = pytest.mark.system


def test_a_run_that_is_taken_twice_runs_once(signed_in: Client) -> None:
    experiment = begin(signed_in)
    signed_in.post(reverse("experiment", args=[experiment.pk]), trial(experiment))
    carry_out()
    finished_at = Run.objects.get().finished_at
    RequestedWork.objects.update(started_at=None, finished_at=None)
    assert carry_out() == 1
    assert Run.objects.get().finished_at == finished_at


def test_a_run_that_takes_too_long_is_ended(signed_in: Client, settings: Settings) -> None:
    settings.EMULATOR_RUN_SECS_MAX = 1
    experiment = begin(signed_in, "n50_projects")
    signed_in.post(reverse("experiment", args=[experiment.pk]), trial(experiment, days="36000"))
    carry_out()
    run = Run.objects.get()
    assert run.state == RunState.FAILED
    assert "more than 1 s of processor time" in str(run.fault)


def test_a_cancelled_run_stops(signed_in: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "POLL_SECS", 0.05)
    experiment = begin(signed_in, "n50_projects")
    signed_in.post(reverse("experiment", args=[experiment.pk]), trial(experiment, days="36000"))
    # As if the owner cancelled while it runs: it looks after a moment.
    report = worker._report_progress

    def cancel_and_report(run_id: int, progress: float) -> None:
        signed_in.post(reverse("experiment_cancel", args=[experiment.pk]))
        report(run_id, progress)

    monkeypatch.setattr(worker, "_report_progress", cancel_and_report)
    carry_out()
    assert Run.objects.get().state == RunState.CANCELLED


def test_a_queued_run_is_cancelled_at_once(signed_in: Client) -> None:
    experiment = begin(signed_in)
    signed_in.post(reverse("experiment", args=[experiment.pk]), trial(experiment))
    signed_in.post(reverse("experiment_cancel", args=[experiment.pk]))
    carry_out()
    assert Run.objects.get().state == RunState.CANCELLED


def lose(tries: int) -> None:
    """A worker takes the run and is never heard of again, this many times."""
    long_ago = timezone.now() - timedelta(hours=1)
    for _ in range(tries):
        RequestedWork.objects.update(started_at=long_ago, ntries=F("ntries") + 1)
        Run.objects.update(state=RunState.RUNNING, started_at=long_ago, heard_of_at=long_ago)
        worker.requeue_lost(timezone.now())


def test_a_lost_run_is_queued_again(signed_in: Client) -> None:
    experiment = begin(signed_in)
    signed_in.post(reverse("experiment", args=[experiment.pk]), trial(experiment))
    lose(tries=2)
    assert Run.objects.get().state == RunState.QUEUED
    assert carry_out() == 1
    assert Run.objects.get().state == RunState.DONE


def test_a_run_that_is_lost_three_times_is_given_up(signed_in: Client) -> None:
    experiment = begin(signed_in)
    signed_in.post(reverse("experiment", args=[experiment.pk]), trial(experiment))
    lose(tries=3)
    run = Run.objects.get()
    assert run.state == RunState.FAILED and "lost every time" in str(run.fault)
    assert carry_out() == 0


def test_a_run_that_failed_by_a_fault_of_the_machine_waits_for_the_next_worker(
    signed_in: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    experiment = begin(signed_in)
    signed_in.post(reverse("experiment", args=[experiment.pk]), trial(experiment))
    with monkeypatch.context() as patched:
        patched.setattr(worker, "run_process", Mock(side_effect=OSError("no more processes")))
        with pytest.raises(OSError, match="no more"):
            worker.execute_run(Run.objects.get().pk)
    assert Run.objects.get().state == RunState.QUEUED
    worker.execute_run(Run.objects.get().pk)
    assert Run.objects.get().state == RunState.DONE


def test_files_that_could_not_be_read_three_times_are_given_up(
    signed_in: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = SimpleUploadedFile("client_state.xml", (FOLDER / "s1_two_equal_cpu" / "client_state.xml").read_bytes())
    signed_in.post(reverse("emulate_files"), {"client_state": file})

    def fail(_: int) -> None:
        raise OSError

    monkeypatch.setitem(queue.kinds(), experiments.READ, fail)
    for _ in range(queue.MAX_TRIES):
        worker.requeue_lost(timezone.now())
        assert Experiment.objects.get().fault is None
        with pytest.raises(OSError):
            queue.carry_out_next()
    worker.requeue_lost(timezone.now())
    experiment = Experiment.objects.get()
    assert "failed to read them" in signed_in.get(reverse("experiment", args=[experiment.pk])).content.decode()
