"""Fixtures of the emulator's pages and runs."""

from __future__ import annotations

import pytest

from emulator.pages.reads import read_timeline


@pytest.fixture(autouse=True)
def _no_timelines_kept() -> None:
    read_timeline.cache_clear()
