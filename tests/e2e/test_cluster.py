"""The site on several machines, which die: nothing that was acknowledged is lost or doubled, and nobody has to help.

The short form is part of every run; `make faults` goes through all faults, and kills the leader twenty times.
"""

from __future__ import annotations

import hashlib
import logging
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Final

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.utils import timezone
from pytest_django import Settings

from accounting.ledger import check as ledger_check
from credit.models import App
from credit.statistics import check as credit_check
from portal.models import User
from scheduler.files import check as files_check
from scheduler.models import StoredFile, VersionFile
from scheduler.programs import code_signing
from scheduler.submission.submit import submit
from tests.support import s3_server
from tests.support.cluster import faults, writers
from tests.support.cluster.history import ManagedComputer, ProjectComputer, Traffic, without_credit
from tests.support.cluster.postgres import HAPROXY, NODES
from tests.support.cluster.site import ClusterSite
from tests.support.credit_factories import make_version
from tests.support.nginx_deployment import NGINX
from tests.support.s3_server import FaultyProxy, S3Server
from tests.support.scheduler_clients import Computer, key_of
from tests.support.small_disk import small_disk
from tests.support.wait import wait_until
from tools.benchmarks import am_fleet as fleet

NMANAGED: Final = 12
NVOLUNTEERS: Final = 6
NLEADER_KILLS: Final = int(os.environ.get("LEADER_KILLS", "20"))
LONGEST_GAP_SECS: Final = 30.0
LONGEST_OUTAGE_SECS: Final = 2 * LONGEST_GAP_SECS + faults.OUTAGE_SECS
"""Until a machine takes over, until it is back after its own death, and until it leads again."""
CALM_SECS: Final = 2.0
RECOVERY_SECS: Final = 90.0
DISK_NBYTES: Final = 500_000_000
PROGRAM: Final = b"a program"
JOB: Final = {"fpops_est": 1e12, "fpops_bound": 1e16, "output_files": []}

log = logging.getLogger(__name__)
pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.nightly,
    pytest.mark.skipif(
        not (os.access(NGINX, os.X_OK) and os.access(HAPROXY, os.X_OK)) and os.environ.get("REQUIRE_E2E") != "1",
        reason=f"{NGINX} or {HAPROXY} not installed",
    ),
]


def project_app(njobs: int) -> App:
    """An app, a program for it, and jobs that wait."""
    app = App.objects.create(name="alpine", user_friendly_name="Alpine", max_jobs_per_day_init=100_000)
    version = make_version(app)
    md5 = hashlib.md5(PROGRAM, usedforsecurity=False).hexdigest()
    path = default_storage.save("alpine_100", ContentFile(PROGRAM))
    file = StoredFile.objects.create(
        name=path, path=path, nbytes=len(PROGRAM), md5=md5, signature="ab" * 64 + "\n.\n", is_executable=True
    )
    VersionFile.objects.create(app_version=version, file=file, is_main_program=True)
    submit(app, JOB, [{} for _ in range(njobs)], owner=None, now=timezone.now())
    return app


def project_computers() -> list[ProjectComputer]:
    users = [User.objects.create_user(f"cruncher{number}@example.org", None) for number in range(NVOLUNTEERS)]
    return [ProjectComputer(Computer(key_of(user))) for user in users]


@pytest.fixture
def keys(tmp_path: Path, settings: Settings) -> dict[str, str]:
    """What sites and this process have in common."""
    paths = {"CODE_SIGNING_KEY": tmp_path / "code_private", "CODE_SIGNING_KEY_PUBLIC": tmp_path / "code_public"}
    for name, path in paths.items():
        setattr(settings, name, path)
    code_signing.make_if_missing()
    return {"UPLOAD_SECRET": settings.UPLOAD_SECRET} | {name: str(path) for name, path in paths.items()}


@pytest.fixture
def make_site(site_var_dir: Path, tmp_path: Path, settings: Settings, keys: dict[str, str]) -> ClusterSite:
    """With files on a disk that all machines share."""
    settings.MEDIA_ROOT = tmp_path / "files"
    return ClusterSite(site_var_dir, tmp_path, None, **keys)


@pytest.fixture
def in_s3(site_var_dir: Path, tmp_path: Path, settings: Settings, keys: dict[str, str]) -> Iterator[ClusterSite]:
    """With files in an S3 server, which this process reads past what breaks in front of it."""
    with S3Server(tmp_path) as server, closing(FaultyProxy(server.url)) as proxy:
        bucket = server.new_bucket()
        options = s3_server.options(server.url, bucket)
        settings.STORAGES = {**settings.STORAGES, "default": options.as_storage()}
        variables = s3_server.variables(proxy.url, bucket)
        yield ClusterSite(site_var_dir, tmp_path, proxy, **keys, **variables)


@pytest.fixture
def on_small_disks(make_site: ClusterSite, tmp_path: Path) -> Iterator[ClusterSite]:
    """Each data node, and the files, on a disk of their own."""
    with ExitStack() as stack:
        for name in (*NODES, "files"):
            stack.enter_context(small_disk(tmp_path / name, DISK_NBYTES))
        yield make_site


def survives(site: ClusterSite, fault: faults.Fault, traffic: Traffic) -> None:
    """One fault under traffic; afterwards all is as it was, and what was acknowledged is stored."""
    with traffic:
        # The clients are at it when it happens, and afterwards.
        time.sleep(CALM_SECS)
        fault(site)
        wait_until(site.data.is_whole, f"three machines after {fault.__name__}", RECOVERY_SECS, 0.5)
        time.sleep(CALM_SECS)
    with site.data.connect() as session:
        assert traffic.faults(session, is_frozen=True) == [], fault.__name__
    traffic.end()
    with site.data.connect() as session:
        assert traffic.faults(session) == [], fault.__name__
        wait_until(lambda: not without_credit(session), "credit for what was reported", RECOVERY_SECS)
    with site.as_database():
        differences = [*ledger_check.differences(), *credit_check.differences(), *files_check.differences()]
        assert differences == [], fault.__name__
    gaps = traffic.history.longest_gaps_secs()
    acknowledged = sum(len(times) for times in traffic.history.acknowledged_at.values())
    rounded = {kind: round(secs, 1) for kind, secs in gaps.items()}
    log.warning("%s: %d acknowledged, longest gaps in s: %s", fault.__name__, acknowledged, rounded)
    assert set(gaps) == {"account manager", "project", "pages", "page writes", "REST", "uploads"}, traffic.history.seen
    limit_secs = LONGEST_OUTAGE_SECS if fault is faults.kill_two_leaders else LONGEST_GAP_SECS
    assert max(gaps.values()) < limit_secs, (fault.__name__, gaps)
    assert traffic.history.seen["pages"] <= {"503"}


def goes_through(site: ClusterSite, several: list[faults.Fault], njobs: int) -> None:
    app, project = project_app(njobs), project_computers()
    managed = [ManagedComputer(member) for member in fleet.create(NMANAGED)]
    others = writers.create(app, JOB, nuploads=njobs // 5)

    def traffic() -> Traffic:
        return Traffic(site.address, managed, project, others)

    with site:
        traffic().begin()
        for fault in several:
            survives(site, fault, traffic())


def test_what_was_acknowledged_survives_the_death_of_a_web_node_and_of_the_primary(make_site: ClusterSite) -> None:
    goes_through(make_site, list(faults.SHORT), njobs=600)


@pytest.mark.parametrize("fault", faults.FAULTS, ids=lambda fault: fault.__name__)
def test_what_was_acknowledged_survives(fault: faults.Fault, in_s3: ClusterSite) -> None:
    goes_through(in_s3, [fault], njobs=1500)


@pytest.mark.parametrize("fault", faults.OF_CLOCKS, ids=lambda fault: fault.__name__)
def test_what_was_acknowledged_gets_its_credit_whatever_a_clock_says(fault: faults.Fault, in_s3: ClusterSite) -> None:
    in_s3.has_clocks = True
    goes_through(in_s3, [fault], njobs=3000)


@pytest.mark.parametrize("fault", faults.OF_DISKS, ids=lambda fault: fault.__name__)
def test_what_was_acknowledged_survives_full_disks(fault: faults.Fault, on_small_disks: ClusterSite) -> None:
    goes_through(on_small_disks, [fault], njobs=1500)


def test_what_was_acknowledged_survives_twenty_deaths_of_the_leader(in_s3: ClusterSite) -> None:
    goes_through(in_s3, [faults.kill_leader] * NLEADER_KILLS, njobs=15_000)
