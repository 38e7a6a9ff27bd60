"""Acknowledged data is on the disk, not only in the machine's memory."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import default_storage
from django.db import connection
from pytest_django import Settings

from portal.models import Host
from scheduler.models import Upload
from tests.support.upload_requests import make_task, post, upload_body

pytestmark = pytest.mark.django_db


def test_a_file_and_its_folders_are_written_through_before_the_upload_is_noted(
    studio: Host, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[Path | str] = []

    def fsync(descriptor: int, really: Callable[[int], None] = os.fsync) -> None:
        really(descriptor)
        events.append(Path(f"/proc/self/fd/{descriptor}").readlink())

    def note(execute: Callable[..., Any], statement: Any, *more: Any) -> Any:
        if "completed_at" in str(statement) and str(statement).startswith("UPDATE"):
            events.append("noted")
        return execute(statement, *more)

    monkeypatch.setattr(os, "fsync", fsync)
    make_task("t", studio)
    with connection.execute_wrapper(note):
        assert post(upload_body("t_0", b"content")) == "0"
    file = Path(default_storage.path(Upload.objects.get(name="t_0").path)).resolve()
    root = Path(settings.MEDIA_ROOT).resolve()
    folders = [folder for folder in file.parents if folder.is_relative_to(root)]
    assert len(folders) == 3
    assert events[-1] == "noted" and {file, *folders} <= set(events[:-1])


def test_what_cannot_be_written_through_is_not_acknowledged(studio: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when a disk reports only then that it could not write."""

    def fail(_: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    make_task("t", studio)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        assert post(upload_body("t_0", b"content")).startswith("1 ")
    assert Upload.objects.get(name="t_0").completed_at is None
    assert post(upload_body("t_0", b"content")) == "0"
