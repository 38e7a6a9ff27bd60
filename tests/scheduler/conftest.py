"""Folders and keys of one's own for each test of the project server."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytest_django import Settings

from scheduler.programs import code_signing
from scheduler.ready_jobs import job_cache


@pytest.fixture(scope="session")
def code_key_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where this test run's code-signing key is kept: made once, as making one takes its time."""
    return tmp_path_factory.mktemp("code_keys")


@pytest.fixture(autouse=True)
def project_folders(tmp_path: Path, code_key_folder: Path, settings: Settings) -> None:
    """Uploads and stored files below the test's own folder; a code-signing key."""
    settings.UPLOADS_DIR = tmp_path / "uploads"
    settings.MEDIA_ROOT = tmp_path / "files"
    settings.CODE_SIGNING_KEY = code_key_folder / "private"
    settings.CODE_SIGNING_KEY_PUBLIC = code_key_folder / "public"
    code_signing.make_if_missing()


@pytest.fixture
def filled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the queue's end the job cache is not filled again, however slow the machine."""
    monkeypatch.setattr(job_cache, "PAUSE_SECS", 6000.0)
