"""Fixtures of the emulator's pages and runs."""

from __future__ import annotations

import pytest

from emulator.pages.reads import read_timeline
from emulator.runs import replays, worker
from tests.support.emulator_experiments import run_here


@pytest.fixture(autouse=True)
def _no_timelines_kept() -> None:
    read_timeline.cache_clear()


@pytest.fixture(autouse=True)
def _computed_in_this_process(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Starting a process takes longer than what most tests compute; those of the process itself are marked."""
    if request.node.get_closest_marker("unit"):
        for module in (worker, replays):
            monkeypatch.setattr(module, "run_process", run_here)
