"""Fixtures of the emulator's pages and runs."""

from __future__ import annotations

import pytest
from django.test import Client

from emulator.pages.reads import read_timeline


@pytest.fixture
def signed_in(signed_in: Client, queue: list[tuple[str, int]]) -> Client:
    return signed_in


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """What workers would be told; tests carry it out themselves, so that they see each state."""
    told: list[tuple[str, int]] = []
    monkeypatch.setattr("emulator.tasks.carry_out.delay", lambda pk: told.append(("run", pk)))
    monkeypatch.setattr("emulator.tasks.read_upload.delay", lambda pk: told.append(("read", pk)))
    read_timeline.cache_clear()
    return told
