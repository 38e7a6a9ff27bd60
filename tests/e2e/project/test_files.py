"""The files of jobs on their way to a real BOINC client and back."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.files.storage import default_storage
from django.utils import timezone
from pytest_django import Settings

from credit.models import App, Result, ValidateState, Workunit
from portal.models import User
from scheduler.models import KeptOutput, StickyFile, StoredFile, Upload
from scheduler.submission.submit import submit
from tests.support.boinc_client import BoincClient
from tests.support.own_project import SHORT, Manage, ask_until, attach
from tests.support.raw_server import RawServer, by_path, reply
from tests.support.site_process import Site

APP = Path(__file__).parents[2] / "data" / "apps" / "joiner"
MAP, NEAR = b"ice and sea\n" * 20_000, b"a glacier\n" * 10_000


@pytest.fixture
def site_settings(site_settings: dict[str, str]) -> dict[str, str]:
    """One job at a time, so that the second one finds the files of the first."""
    return {**site_settings, "MAX_JOBS_PER_RPC": "1", "MAX_JOBS_IN_PROGRESS": "1"}


@pytest.fixture
def mirrors() -> Iterator[RawServer]:
    """Two servers in one: the first is out of order, the second has the map, packed."""
    with RawServer(
        by_path(first=reply(b"", status="503 Service Unavailable"), second=reply(gzip.compress(MAP, mtime=0)))
    ) as server:
        yield server


def test_a_computer_fetches_from_the_server_that_works_keeps_the_files_and_deletes_them_at_the_end(
    site: Site,
    manage: Manage,
    background: None,
    project: str,
    boinc_client: BoincClient,
    alice: User,
    mirrors: RawServer,
    tmp_path: Path,
    settings: Settings,
) -> None:
    settings.MEDIA_ROOT = Path(site.environment["VAR_DIR"]) / "files"
    settings.REMOTE_INPUT_HOSTS = ["127.0.0.1"]
    manage("release_app_version", str(APP))
    (tmp_path / "near.txt").write_bytes(NEAR)
    manage("store_file", str(tmp_path / "near.txt"), "--gzip")
    md5 = hashlib.md5(MAP).hexdigest()
    far = {"open_name": "shared/map", "nbytes": len(MAP), "md5": md5, "sticky": True}
    far |= {"url": [f"{mirrors.url}{name}" for name in ("first", "second")]}
    far |= {"gzipped_url": [f"{mirrors.url}{name}.gz" for name in ("first", "second")]}
    far |= {"gzipped_nbytes": len(gzip.compress(MAP, mtime=0))}
    near = {"open_name": "near", "name": "near.txt", "gzip": True, "sticky": True}
    outputs = [{"open_name": "out", "max_nbytes": 1_000_000, "gzip_when_done": True}]
    defaults = {**SHORT, "min_quorum": 1, "input_files": [far, near], "output_files": outputs}
    attach(boinc_client, site, alice.email, project)
    submit(App.objects.get(name="joiner"), defaults, [{}, {}], owner=None, now=timezone.now())

    valid = Result.objects.filter(validate_state=ValidateState.VALID)
    ask_until(lambda: valid.count() == 2, "both jobs to be validated", [boinc_client], project, site)
    # What the program wrote came packed, and is here as it wrote it.
    for upload in Upload.objects.all():
        assert upload.sent_nbytes is not None and upload.sent_nbytes < upload.nbytes == len(MAP + NEAR)
    with default_storage.open(KeptOutput.objects.all()[0].path) as output:
        assert output.read() == MAP + NEAR
    # Both files were fetched packed and once: the map from the second server, as the first was out of order.
    log = boinc_client.log()
    kept = [file["name"] for file in Workunit.objects.all()[0].input_files]
    assert [log.count(f"Finished download of {name}") for name in kept] == [1, 1]
    asked_for = [request.split(b" ")[1] for request in mirrors.requests]
    assert set(asked_for) <= {b"/first.gz", b"/second.gz"} and asked_for.count(b"/second.gz") == 1

    # The last batch that needs the map is done, and an operator deletes the other file.
    folder = next((boinc_client.directory / "projects").iterdir())
    assert all((folder / name).exists() for name in kept)
    StoredFile.objects.filter(name="near.txt").update(deleted_at=timezone.now())
    ask_until(
        lambda: not StickyFile.objects.exists() and not any((folder / name).exists() for name in kept),
        "the files to be deleted",
        [boinc_client],
        project,
        site,
    )
