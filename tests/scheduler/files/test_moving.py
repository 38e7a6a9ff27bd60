"""Moving all files between a folder and a real S3 server: interrupted, repeated, with faults, and back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.core.management import CommandError, call_command
from pytest_django import Settings

from portal.models import Host
from portal.object_storage.backend import ObjectStorage
from scheduler.files import check
from scheduler.files.store import store_file
from scheduler.models import StoredFile, Upload
from tests.support.s3_server import FaultyProxy, S3Server, keys, options, variables
from tests.support.site_process import CHECKOUT, environment
from tests.support.upload_requests import make_task, post, upload_body
from tests.support.wait import wait_until

pytestmark = pytest.mark.django_db
NFILES = 30


@pytest.fixture
def target(
    s3_server: S3Server, s3_proxy: FaultyProxy, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> ObjectStorage:
    """An empty bucket, which the environment names; the site's files are in a folder."""
    name = s3_server.new_bucket()
    for key, value in variables(s3_proxy.url, name).items():
        monkeypatch.setenv(key, value)
    return ObjectStorage(options(s3_server.url, name))


@pytest.fixture
def use(settings: Settings, target: ObjectStorage) -> Callable[[bool], None]:
    """Has the site use the bucket (True) or the folder."""
    folder = settings.STORAGES["default"]

    def change(in_bucket: bool) -> None:
        entry = target.options.as_storage() if in_bucket else folder
        settings.STORAGES = {**settings.STORAGES, "default": entry}

    return change


@pytest.fixture
def files(studio: Host, target: ObjectStorage) -> list[str]:
    """The paths of a program, inputs and an output."""
    paths = [store_file(f"file_{number}", ContentFile(os.urandom(20_000))).path for number in range(NFILES)]
    make_task("t", studio)
    assert post(upload_body("t_0", b"forty-two")) == "0"
    return [*paths, Upload.objects.get().path]


def move(*arguments: str) -> str:
    output = StringIO()
    call_command("move_files", *arguments, stdout=output)
    return output.getvalue().strip()


def in_folder(settings: Settings) -> list[Path]:
    return [path for path in Path(settings.MEDIA_ROOT).rglob("*") if path.is_file()]


def test_all_files_are_copied_once_and_deleted_when_the_site_uses_the_copies(
    files: list[str], target: ObjectStorage, settings: Settings, use: Callable[[bool], None]
) -> None:
    assert move("--to", "s3") == f"Copied {NFILES + 1} files, {NFILES * 20_000 + 9} bytes; 0 were there."
    assert sorted(keys(target)) == sorted(files) and len(in_folder(settings)) == NFILES + 1
    with pytest.raises(CommandError, match="still uses the storage"):
        move("--to", "s3", "--delete")
    # Some came, and one went, since then; of one the bucket has only a part.
    late = store_file("late", ContentFile(b"late"))
    StoredFile.objects.filter(path=files[0]).delete()
    target.client.put_object(Bucket=target.bucket_name, Key=files[1], Body=b"half")
    use(True)
    assert move("--to", "s3", "--delete") == f"Copied 2 files, 20004 bytes; {NFILES - 1} were there."
    assert [path.name for path in in_folder(settings)] == [Path(files[0]).name]
    assert list(check.differences()) == []
    # And back, with the folder as the target.
    use(False)
    assert move("--to", "folder", "--delete").startswith(f"Copied {NFILES + 1} files")
    assert list(check.differences()) == []
    assert keys(target) == [files[0]] and default_storage.exists(late.path)


def test_a_file_that_is_not_what_its_row_says_stays_where_it_is(
    files: list[str], target: ObjectStorage, settings: Settings, use: Callable[[bool], None]
) -> None:
    Path(default_storage.path(files[0])).write_bytes(b"other")
    default_storage.delete(files[1])
    use(True)
    with pytest.raises(CommandError, match="2 files could not be copied"):
        move("--to", "s3", "--delete")
    assert [path.read_bytes() for path in in_folder(settings)] == [b"other"]
    assert not {files[0], files[1]} & set(keys(target))


def test_while_the_storage_has_a_fault_it_ends_with_one_line_and_deletes_nothing(
    files: list[str], s3_proxy: FaultyProxy, settings: Settings, use: Callable[[bool], None]
) -> None:
    use(True)
    with s3_proxy.broken("error"), pytest.raises(CommandError, match=r"^Interrupted after 0 files: .*Repeat the"):
        move("--to", "s3", "--delete")
    assert len(in_folder(settings)) == NFILES + 1


@pytest.mark.django_db(transaction=True)
def test_a_run_that_is_killed_loses_nothing_and_the_next_one_ends_it(
    files: list[str], target: ObjectStorage, s3_proxy: FaultyProxy, settings: Settings, tmp_path: Path
) -> None:
    site = variables(s3_proxy.url, target.bucket_name) | {"FILES_DIR": str(settings.MEDIA_ROOT)}
    command = [sys.executable, "manage.py", "move_files", "--to", "s3", "--delete"]
    run = subprocess.Popen(command, cwd=CHECKOUT, env=environment(tmp_path, **site), stdout=subprocess.PIPE)
    try:
        wait_until(lambda: len(keys(target)) > 3 or run.poll() is not None, "some to be copied", 60, poll_secs=0.01)
    finally:
        run.send_signal(signal.SIGKILL)
        assert run.wait() == -signal.SIGKILL
        assert run.stdout is not None
        run.stdout.close()
    # Each file is whole in one of them, at least.
    left = {str(path.relative_to(settings.MEDIA_ROOT)) for path in in_folder(settings)}
    assert left and len(left) < len(files) and left | set(keys(target)) == set(files)
    settings.STORAGES = {**settings.STORAGES, "default": target.options.as_storage()}
    assert move("--to", "s3", "--delete").startswith("Copied")
    assert in_folder(settings) == [] and list(check.differences()) == []
