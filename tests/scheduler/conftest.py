"""Separate folders and keys for each test of the project server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.files.storage import default_storage
from pytest_django import Settings

from portal.object_storage import backend
from portal.object_storage.backend import ObjectStorage
from scheduler.programs import code_signing
from scheduler.ready_jobs import ready_queue
from tests.support import s3_server as s3_module
from tests.support.s3_server import FaultyProxy, S3Server


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
    monkeypatch.setattr(ready_queue, "PAUSE_SECS", 6000.0)


@pytest.fixture
def s3_proxy(s3_server: S3Server) -> Iterator[FaultyProxy]:
    """What is in front of it, and breaks when a test says so."""
    proxy = FaultyProxy(s3_server.url)
    yield proxy
    proxy.close()


@pytest.fixture
def bucket(
    s3_server: S3Server, s3_proxy: FaultyProxy, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ObjectStorage]:
    """The site's files are in an empty bucket; who does not answer for a second is given up."""
    monkeypatch.setattr(backend, "READ_SECS", 1)
    entry = s3_module.options(s3_proxy.url, s3_server.new_bucket()).as_storage()
    settings.STORAGES = {**settings.STORAGES, "default": entry}
    assert isinstance(default_storage, ObjectStorage)
    yield default_storage
    default_storage.close()
