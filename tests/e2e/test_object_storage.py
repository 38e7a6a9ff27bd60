"""Two web nodes with no disk in common, files in a real S3 server, and a real BOINC client that computes a job."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from django.conf import global_settings
from django.core.files.storage import default_storage
from pytest_django import Settings

from accounting.models import Project
from credit.models import Result, ValidateState
from portal.models import Host, User
from portal.object_storage.backend import ObjectStorage
from scheduler.files import check
from scheduler.models import KeptOutput, StoredFile, Upload
from tests.support.boinc_client import BoincClient
from tests.support.credit_factories import make_app
from tests.support.own_project import PASSWORDS, QUICK, Manage, ask_until, attach
from tests.support.s3_server import S3Server, keys, options, variables
from tests.support.site_process import CHECKOUT, Site, celery_worker
from tests.support.upload_requests import make_task, size_query, upload_body
from tests.support.upload_sockets import connect, post
from tests.support.wait import wait_until

LIMIT = 2**21


@pytest.fixture
def in_s3(s3_server: S3Server, settings: Settings) -> Iterator[dict[str, str]]:
    """The environment of sites whose files are in an empty bucket; the test looks into it, too."""
    bucket = s3_server.new_bucket()
    settings.STORAGES = {**settings.STORAGES, "default": options(s3_server.url, bucket).as_storage()}
    settings.UPLOADS_IN_STORAGE = True
    yield variables(s3_server.url, bucket)
    assert isinstance(default_storage, ObjectStorage)
    default_storage.close()


def bucket() -> ObjectStorage:
    assert isinstance(default_storage, ObjectStorage)
    return default_storage


@pytest.fixture
def nodes(
    transactional_db: None, site_var_dir: Path, tmp_path: Path, in_s3: dict[str, str], settings: Settings
) -> Iterator[list[Site]]:
    """Two web nodes."""
    with ExitStack() as stack:
        sites = []
        for name in ("first", "second"):
            disk = {"UPLOADS_DIR": str(tmp_path / name / "uploads"), "FILES_DIR": str(tmp_path / name / "files")}
            site = Site(site_var_dir, tmp_path / f"{name}.log", UPLOAD_SECRET=settings.UPLOAD_SECRET, **disk, **in_s3)
            sites.append(stack.enter_context(site))
        yield sites


def test_uploads_go_on_at_any_node_also_when_one_is_killed(nodes: list[Site], studio: Host, tmp_path: Path) -> None:
    dice = random.Random(1)
    app = make_app("uploads")
    contents = {f"t{number}_0": dice.randbytes(dice.randrange(1, LIMIT)) for number in range(6)}
    for name in contents:
        make_task(name[:-2], studio, app=app, max_nbytes=LIMIT)
    for name, content in contents.items():
        here, node = 0, 0
        # Cut off twice, and each time gone on with at the other node.
        for part in (0.4, 0.7):
            whole = upload_body(name, content, offset=here, max_nbytes=LIMIT)
            head_nbytes = len(whole) - len(content) + here
            with connect(nodes[node], len(whole)) as connection:
                connection.sendall(whole[: head_nbytes + int(part * len(content)) - here])
            wanted = int(part * len(content))
            stored = Upload.objects.filter(name=name, received_nbytes=wanted, writer=None)
            wait_until(stored.exists, "what came to be stored", 20)
            node = 1 - node
            status, counted = post(nodes[node], size_query(name)).split()
            here = int(counted)
            assert (status, here) == ("0", wanted)
        assert post(nodes[node], upload_body(name, content, offset=here, max_nbytes=LIMIT)) == "0"
    # A node that is killed in the middle of an upload: the other one takes it, after some time.
    make_task("k", studio, app=app, max_nbytes=LIMIT)
    content = os.urandom(LIMIT)
    whole = upload_body("k_0", content, max_nbytes=LIMIT)
    with connect(nodes[0], len(whole)) as connection:
        connection.sendall(whole[: LIMIT // 2])
        wait_until(lambda: Upload.objects.filter(name="k_0").exclude(writer=None).exists(), "the upload to begin", 20)
        nodes[0].kill()
    assert post(nodes[1], whole) == "1 Another upload of this file is going on."
    Upload.objects.filter(name="k_0").update(writer_until="2020-01-01T00:00:00Z")
    assert post(nodes[1], whole) == "0"
    assert list(check.differences()) == []
    uploads = Upload.objects.exclude(completed_at=None)
    assert set(uploads.values_list("name", flat=True)) == {*contents, "k_0"}
    assert sorted(keys(bucket())) == sorted(uploads.values_list("path", flat=True))
    # Nothing of it was ever on a node's disk.
    assert not (tmp_path / "first").exists() and not (tmp_path / "second").exists()


def test_a_client_fetches_program_and_input_there_and_its_output_comes_back(
    transactional_db: None,
    site_var_dir: Path,
    tmp_path: Path,
    in_s3: dict[str, str],
    settings: Settings,
    alice: User,
    boinc_client: BoincClient,
) -> None:
    settings.PASSWORD_HASHERS = global_settings.PASSWORD_HASHERS
    alice.set_password(PASSWORDS[alice.email])
    alice.save()
    code_keys = {name: str(tmp_path / name.lower()) for name in ("CODE_SIGNING_KEY", "CODE_SIGNING_KEY_PUBLIC")}
    # Other sites of this test process have their files there.
    on_disk = set((site_var_dir / "files").rglob("*"))
    with Site(site_var_dir, tmp_path / "site.log", **QUICK, **code_keys, **in_s3) as site:
        manage = Manage(site)
        manage("prepare")
        Project.objects.update(is_active=True)
        manage("release_app_version", str(CHECKOUT / "scheduler" / "examples" / "collatz"))
        manage.submit("collatz", [{"command_line": "1000000000000 20000"}], min_quorum=1, target_nresults=1)
        project = Project.objects.get().master_url
        clock = ("--beat", "--schedule", str(tmp_path / "beat"))
        with celery_worker(site.environment, tmp_path / "worker.log", *clock):
            attach(boinc_client, site, alice.email, project)
            valid = Result.objects.filter(validate_state=ValidateState.VALID)
            ask_until(valid.exists, "the job to be validated", [boinc_client], project, site)
            wait_until(KeptOutput.objects.exists, "its output to be kept", 60)
        downloads = [line for line in site.log().splitlines() if "/project/download/" in line]
        assert downloads and all('"status":302' in line for line in downloads), downloads
    paths = {*StoredFile.objects.values_list("path", flat=True), *KeptOutput.objects.values_list("path", flat=True)}
    assert paths <= set(keys(bucket()))
    assert list(check.differences()) == []
    assert set((site_var_dir / "files").rglob("*")) == on_disk
