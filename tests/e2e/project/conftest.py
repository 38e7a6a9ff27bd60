"""What tests of the site's own project start from: both rooms, background tasks, an app, volunteers' clients."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import global_settings
from pytest_django.fixtures import Settings

from accounting.models import Project
from credit.models import App
from extras.moving_in.tests.conftest import mariadb, old_project
from portal.models import User
from tests.support.boinc_client import BoincClient
from tests.support.own_project import PASSWORDS, QUICK, Manage
from tests.support.site_process import CHECKOUT, Site, celery_worker

__all__ = ["mariadb", "old_project"]


@pytest.fixture
def site_settings(tmp_path: Path) -> dict[str, str]:
    """Background tasks come quickly."""
    # Keys of its own, as one is changed.
    code_keys = {name: str(tmp_path / name.lower()) for name in ("CODE_SIGNING_KEY", "CODE_SIGNING_KEY_PUBLIC")}
    return {**QUICK, **code_keys}


@pytest.fixture
def manage(site: Site) -> Manage:
    return Manage(site)


@pytest.fixture
def background(site: Site, manage: Manage, tmp_path: Path) -> Iterator[None]:
    """A Celery worker with its clock, on the site's database and queue."""
    clock = ("--beat",)
    with celery_worker(site.environment, tmp_path / "worker.log", *clock):
        yield


@pytest.fixture
def project(manage: Manage) -> str:
    """The master URL of the site's own project, offered to volunteers, with the Collatz app released."""
    manage("prepare")
    Project.objects.update(is_active=True)
    manage("release_app_version", str(CHECKOUT / "scheduler" / "examples" / "collatz"))
    # The example lets a newcomer's only computer check itself; here it takes two people.
    App.objects.update(one_result_per_user=True)
    return Project.objects.get().master_url


@pytest.fixture(autouse=True)
def passwords(alice: User, bob: User, settings: Settings) -> None:
    """Hashed as the site hashes them, which the tests' quick hasher does not."""
    settings.PASSWORD_HASHERS = global_settings.PASSWORD_HASHERS
    for user in (alice, bob):
        user.set_password(PASSWORDS[user.email])
        user.save()


@pytest.fixture
def clients(alice: User, bob: User, boinc_client: BoincClient, tmp_path: Path) -> Iterator[dict[str, BoincClient]]:
    """Two volunteers' computers, by their names."""
    with BoincClient(tmp_path / "other") as other:
        yield {"alice": boinc_client, "bob": other}
