"""Two web nodes with no disk in common behind nginx, files in a real S3 server, and a real BOINC client at work."""

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
from scheduler.models import KeptOutput, PendingFile, StoredFile, Upload
from tests.support.boinc_client import BoincClient
from tests.support.credit_factories import make_app
from tests.support.nginx_deployment import Program, write_configuration
from tests.support.own_project import PASSWORDS, QUICK, Manage, ask_until, attach
from tests.support.s3_server import S3Server, keys, options, variables
from tests.support.site_process import CHECKOUT, Site, celery_worker
from tests.support.upload_requests import address_of, make_task, size_query, upload_body
from tests.support.upload_sockets import connect, post, received_nbytes
from tests.support.wait import wait_until
from tools.benchmarks.harness.server import free_port

LIMIT = 2**21
NODES = ("first", "second")


@pytest.fixture
def in_s3(s3_server: S3Server, settings: Settings) -> Iterator[dict[str, str]]:
    """The environment of sites whose files are in an empty bucket; the test looks into it, too."""
    bucket = s3_server.new_bucket()
    settings.STORAGES = {**settings.STORAGES, "default": options(s3_server.url, bucket).as_storage()}
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
        for name in NODES:
            disk = {"UPLOADS_DIR": str(tmp_path / name / "uploads"), "FILES_DIR": str(tmp_path / name / "files")}
            site = Site(site_var_dir, tmp_path / f"{name}.log", UPLOAD_SECRET=settings.UPLOAD_SECRET, **disk, **in_s3)
            sites.append(stack.enter_context(site))
        yield sites


@pytest.fixture
def proxy(nginx: str, nodes: list[Site], tmp_path: Path) -> Iterator[Program]:
    """nginx in front of both, by the file in deploy/."""
    port = free_port()
    ports = [int(node.url.rstrip("/").rpartition(":")[2]) for node in nodes]
    write_configuration(tmp_path, port, ports, ports, {})
    command = [nginx, "-p", str(tmp_path), "-e", "stderr", "-c", str(tmp_path / "nginx.conf")]
    with Program(command, f"http://127.0.0.1:{port}/", tmp_path / "proxy.log", os.environ) as program:
        yield program


def test_the_pieces_of_a_file_go_to_one_node_and_a_file_begins_again_when_that_is_killed(
    proxy: Program, nodes: list[Site], studio: Host, tmp_path: Path
) -> None:
    dice = random.Random(1)
    app = make_app("uploads")
    contents = {f"t{number}_0": dice.randbytes(dice.randrange(LIMIT // 4, LIMIT)) for number in range(8)}
    for name in contents:
        make_task(name[:-2], studio, app=app, max_nbytes=LIMIT)

    def send_part(name: str, here: int, nbytes: int) -> int:
        """How much of the file is there after this much more of it was sent; nginx may have kept some of it."""
        whole = upload_body(name, contents[name], offset=here, max_nbytes=LIMIT)
        with connect(proxy, len(whole), address_of(whole)) as connection:
            connection.sendall(whole[: len(whole) - len(contents[name]) + here + nbytes])
        return received_nbytes(proxy, name, here)

    seen = set()
    for name, content in contents.items():
        first = send_part(name, 0, int(0.4 * len(content)))
        assert send_part(name, first, int(0.4 * len(content))) > first
        (path,) = tmp_path.glob(f"*/uploads/*/{name}")
        seen.add(path.relative_to(tmp_path).parts[0])
    assert seen == set(NODES)
    # Of those that had their parts on the node that is killed, nothing is left.
    nodes[0].kill()
    sizes = {name: post(proxy, size_query(name)) for name in contents}
    assert {size == "0 0" for size in sizes.values()} == {True, False}
    for name, content in contents.items():
        here = int(sizes[name].split()[1])
        assert post(proxy, upload_body(name, content, offset=here, max_nbytes=LIMIT)) == "0"
    assert list(check.differences()) == []
    uploads = Upload.objects.exclude(completed_at=None)
    assert set(uploads.values_list("name", flat=True)) == set(contents)
    assert sorted(keys(bucket())) == sorted(uploads.values_list("path", flat=True))
    assert not PendingFile.objects.exists()
    assert list(tmp_path.glob("second/uploads/*/*")) == []


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
