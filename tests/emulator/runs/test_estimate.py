"""How long runs are said to take."""

from __future__ import annotations

import datetime as dt

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django.fixtures import Settings

from emulator.engine.policies.rec import Rec
from emulator.engine.run import run
from emulator.files.presets import preset, two_processors_75_25
from emulator.models import Experiment, Run, RunState
from emulator.runs.estimate import START_SECS, expected_jobs, remaining_secs, run_secs
from portal.models import User
from tests.support.emulator_experiments import begin, trial
from tests.support.page_text import text_of


def test_the_number_of_jobs_is_time_over_their_length() -> None:
    # Two CPUs for 10 days are 480 h: three quarters for A's jobs of 4 h, a quarter for B's of 1 h: 90 + 120.
    assert expected_jobs(two_processors_75_25(), 10) == pytest.approx(210)


@pytest.mark.parametrize("key", ["s1_two_equal_cpu", "s2_gpu_example1", "s4_shares_60_30_10", "n10_projects"])
def test_the_expected_number_is_near_the_real_one(key: str) -> None:
    scenario = preset(key).scenario
    done = sum(row.jobs for row in run(scenario, Rec(), 20.0, timeline=False).projects)
    assert expected_jobs(scenario, 20.0) == pytest.approx(done, rel=0.35)


def test_earlier_runs_say_how_long_a_job_takes(alice: User) -> None:
    found = Experiment.objects.create(owner=alice, title="t", scenario={})
    for number, secs in enumerate((0.02, 0.03, 9.0), 1):
        Run.objects.create(
            experiment=found,
            number=number,
            variant="v",
            policy="ltd",
            state=RunState.DONE,
            cpu_secs=START_SECS + 1000 * secs,
            projects=[{"jobs": 1000}],
        )
    # The median: one run on a busy machine says little.
    assert run_secs(["ltd"], 500) == [pytest.approx(START_SECS + 15)]
    unknown, rec = run_secs(["somebodys-own", "rec"], 1000)
    assert unknown > rec > START_SECS


def test_a_form_is_estimated_as_it_is_filled_in(signed_in: Client, settings: Settings) -> None:
    settings.EMULATOR_RUN_SECS_MAX = 60
    experiment = begin(signed_in)
    address = reverse("experiment_estimate", args=[experiment.pk])
    answer = signed_in.post(address, trial(experiment, policies=["rec", "ltd"], nseeds="3"))
    assert "6 runs, each with about" in text_of(answer)
    long = signed_in.post(address, trial(experiment, policies=["ltd"], days="36525"))
    assert "1 run with about" in text_of(long) and "longer than this site allows" in text_of(long)
    assert text_of(signed_in.post(address, trial(experiment, days="many"))) == ""


def test_what_is_left_follows_from_what_is_done() -> None:
    now = timezone.now()
    begun = now - dt.timedelta(seconds=30)
    done = Run(state=RunState.DONE, progress=1.0, started_at=begun)
    half = Run(state=RunState.RUNNING, progress=0.5, started_at=begun)
    waits = Run(state=RunState.QUEUED)
    # 1.5 of 3 in 30 s: the other 1.5 take as long.
    assert remaining_secs([done, half, waits], now) == pytest.approx(30)
    assert remaining_secs([waits], now) is None
    assert remaining_secs([Run(state=RunState.RUNNING, progress=0.001, started_at=begun)], now) is None
