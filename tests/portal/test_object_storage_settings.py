"""The settings of object storage: read, refused in one line that names them, and what contradicts what."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytest_django import Settings

from portal.environment import SettingError
from portal.object_storage import checks, options
from tests.support import s3_server

BUCKET = s3_server.variables("http://127.0.0.1:9000", "portal-files")


@pytest.fixture(autouse=True)
def variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in BUCKET.items():
        monkeypatch.setenv(name, value)


def test_a_bucket_is_enough(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found = options.read()
    assert found is not None
    assert (found.endpoint, found.public_endpoint, found.addressing) == ("http://127.0.0.1:9000",) * 2 + ("path",)
    monkeypatch.delenv("FILES_S3_ENDPOINT")
    monkeypatch.delenv("FILES_S3_ACCESS_KEY")
    monkeypatch.delenv("FILES_S3_SECRET_KEY")
    found = options.read()
    assert found is not None
    assert (found.endpoint, found.region, found.addressing, found.access_key) == ("", "us-east-1", "auto", "")
    for name in ("ACCESS", "SECRET"):
        (tmp_path / name).write_text(f"{name.lower()}\n")
        monkeypatch.setenv(f"FILES_S3_{name}_KEY_FILE", str(tmp_path / name))
    found = options.read()
    assert found is not None and (found.access_key, found.secret_key) == ("access", "secret")


def test_without_it_files_are_in_a_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FILES_STORAGE")
    monkeypatch.delenv("FILES_S3_BUCKET")
    assert options.storage_entry() == {"BACKEND": "django.core.files.storage.FileSystemStorage"}
    assert not options.is_chosen() and options.read() is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("FILES_S3_BUCKET", "Portal Files"),
        ("FILES_S3_BUCKET", ""),
        ("FILES_S3_ENDPOINT", "s3.example.org"),
        ("FILES_S3_ENDPOINT", "https://s3.example.org/files"),
        ("FILES_S3_ENDPOINT", "https://key:secret@s3.example.org"),
        ("FILES_S3_PUBLIC_ENDPOINT", "ftp://s3.example.org"),
        ("FILES_S3_REGION", "eu central"),
        ("FILES_S3_PREFIX", "../other"),
        ("FILES_S3_ADDRESSING", "host"),
        ("FILES_S3_SECRET_KEY", ""),
        ("FILES_S3_ACCESS_KEY", ""),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingError) as caught:
        options.storage_entry()
    assert name in str(caught.value) and "\n" not in str(caught.value) and "a-secret-key" not in str(caught.value)


def test_what_is_set_for_a_folder_contradicts_a_bucket(settings: Settings) -> None:
    settings.STORAGES = {**settings.STORAGES, "default": options.storage_entry()}
    assert checks.check_files(None) == []
    settings.DOWNLOAD_ACCEL_PREFIX = "/stored/"
    assert [found.id for found in checks.check_files(None)] == ["cobblestone.E021"]


def test_a_bucket_that_is_not_used_is_told(settings: Settings) -> None:
    (found,) = checks.check_files(None)
    assert found.id == "cobblestone.W023" and "FILES_S3_BUCKET" in found.msg


@pytest.mark.parametrize(("address", "found"), [("https://s3.example.org", 0), ("http://10.0.0.1:9000", 2)])
def test_addresses_that_others_can_read_on_the_way_are_told(settings: Settings, address: str, found: int) -> None:
    entry = s3_server.options(address, "portal-files").as_storage()
    settings.STORAGES = {**settings.STORAGES, "default": entry}
    assert len(checks.check_transport(None)) == found
