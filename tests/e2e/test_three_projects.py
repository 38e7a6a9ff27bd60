"""Three running sites: a central server averages factors over all, and the one for GPUs only takes the average."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from urllib.request import urlopen

import pytest
from django.core.management import call_command
from django.db import connection
from django.utils import timezone
from pytest_django import Settings

from credit.models import App, AppVersion, Result
from credit.statistics.feeder import feed
from extras.central_factors.collect import Collected, collect
from extras.central_factors.wire import parse_export, parse_factors
from tests.support.credit_engine_facts import about
from tests.support.credit_factories import make_app, make_version
from tests.support.second_database import copy_database, drop_database, in_database
from tests.support.site_process import Site, database_url
from tests.support.validator_runs import done, validate, volunteers


@dataclass
class Project:
    """A site with a database of its own."""

    database: str
    site: Site

    @property
    def url(self) -> str:
        return f"{self.site.url}project/"

    def get(self, page: str) -> bytes:
        with urlopen(self.url + page, timeout=30) as reply:
            return bytes(reply.read())


@pytest.fixture
def projects(
    transactional_db: None, site_var_dir: Path, tmp_path: Path, settings: Settings
) -> Iterator[tuple[Project, Project, Project]]:
    """Asteroids, the central server, and Butterflies have versions for both, Comets for GPUs only."""
    settings.FETCH_ALLOWED_NETWORKS = [ip_network("127.0.0.0/8")]
    test_database = str(connection.settings_dict["NAME"])
    names = [f"{test_database}_{name}" for name in ("comets", "butterflies", "asteroids")]
    with ExitStack() as stack:
        found: list[Project] = []
        for name in names:
            copy_database(name)
            stack.callback(drop_database, name)
            url = urlunsplit(urlsplit(database_url())._replace(path=f"/{name}"))
            more = {"CENTRAL_PROJECTS": ",".join(each.url for each in found)} if name == names[-1] else {}
            site = Site(site_var_dir, tmp_path / f"{name}.log", DATABASE_URL=url, **more)
            found.append(Project(name, stack.enter_context(site)))
        yield found[2], found[1], found[0]


def release(app: App, samples: int, average: float, credit: float, **fields: Any) -> AppVersion:
    gpu: dict[str, Any] = {"processor_type": "NVIDIA", "gpu_usage": 1} if fields.get("plan_class") else {}
    known: dict[str, Any] = {"pfc_n": samples, "pfc_avg": average, "expavg_credit": credit, "expavg_at": timezone.now()}
    return make_version(app, **known, **gpu, **fields)


def scale_of(version: AppVersion) -> float | None:
    return AppVersion.objects.values_list("pfc_scale", flat=True).get(pk=version.pk)


def test_three_project_normalisation_ends_at_the_averages_worked_out_by_hand(
    projects: tuple[Project, Project, Project], settings: Settings
) -> None:
    asteroids, butterflies, comets = projects
    with in_database(asteroids.database):
        app = make_app("rocks")
        release(app, 100, 2.0, 500)
        cuda = release(app, 100, 10.0, 300, plan_class="cuda")
        feed(timezone.now())
        assert scale_of(cuda) == 0.2  # X = min(2, 10) = 2; 2 / 10
    with in_database(butterflies.database):
        app = make_app("wings")
        release(app, 200, 4.0, 50)
        cuda = release(app, 150, 10.0, 100, plan_class="cuda")
        release(app, 99, 1.0, 9_000, plan_class="cuda_new")
        feed(timezone.now())
        assert scale_of(cuda) == 0.4  # X = min(4, 10) = 4; 4 / 10
    with in_database(comets.database):
        app = make_app("tails")
        lonely = release(app, 200, 12.5, 70_000, plan_class="cuda")
        feed(timezone.now())
        assert scale_of(lonely) == 1.0

    # The central server asks the other two.
    settings.PROJECT_URL, settings.CENTRAL_PROJECTS = asteroids.url, [butterflies.url, comets.url]
    with in_database(asteroids.database):
        assert collect(timezone.now()) == Collected(2, 0)
    published = {
        factor.plan_class: factor
        for factor in parse_factors(asteroids.get("version_factors.xml"))
        if factor.processor_type == "NVIDIA"
    }
    # (0.2 × 300 + 0.4 × 100) / (300 + 100) = 100 / 400. Comets' 1 does not count, nor what has 99 samples.
    by_hand = 0.25
    assert published.keys() == {None, "cuda"} and published["cuda"].scale == about(by_hand, rel=1e-4)
    assert published["cuda"].expavg_credit == about(400, rel=1e-3)

    # Comets asks the central server, and sets what it says.
    settings.PROJECT_URL, settings.CENTRAL_PROJECTS, settings.CENTRAL_SERVER = comets.url, [], asteroids.url
    with in_database(comets.database):
        call_command("cross_project_factors", "--collect", "--set")
        feed(timezone.now())
        assert scale_of(lonely) == published["cuda"].scale
        # The job took 3,000 s at 4 GFLOPS: 12e12 FLOPs, × 0.25 = 3e12.
        done(app, lonely, *volunteers(1))
        validate(app)
        result = Result.objects.get()
        assert result.version_scale == published["cuda"].scale
        assert result.claimed_pfc == about(3e12, rel=1e-4)
        assert result.granted_credit == about(3e12 * 200 / 86400e9, rel=1e-4)

    # What it received is marked in its own export, and changes no average when that is collected again.
    (exported,) = parse_export(comets.get("app_versions.php?xml=1"), timezone.now().timestamp()).versions
    assert exported.is_received and exported.pfc_scale == published["cuda"].scale
    settings.PROJECT_URL, settings.CENTRAL_PROJECTS, settings.CENTRAL_SERVER = (
        asteroids.url,
        [butterflies.url, comets.url],
        "",
    )
    with in_database(asteroids.database):
        assert collect(timezone.now(), is_due=True) == Collected(2, 0)
    again = {factor.plan_class: factor.scale for factor in parse_factors(asteroids.get("version_factors.xml"))}
    assert again["cuda"] == about(by_hand, rel=1e-4)
