"""A MariaDB server, and databases of other sites in it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from extras.moving_in.tests.old_project import OldProject
from extras.moving_in.tests.old_science_united import ScienceUnited
from extras.moving_in.tests.small_project import fill
from tests.scheduler.conftest import code_key_folder, project_folders
from tests.support.needs import go_without
from tools.benchmarks.harness import mariadb as harness

__all__ = ["code_key_folder", "project_folders"]

_NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def mariadb() -> Iterator[harness.MariaDB]:
    """A server for all tests of a test process."""
    if not harness.is_installed():
        go_without("mariadb-server not installed")
    with harness.server() as server:
        yield server


@contextmanager
def database(server: harness.MariaDB) -> Iterator[OldProject]:
    name = f"project{next(_NUMBERS)}"
    project = OldProject.create(server, name)
    yield project
    project.close()
    server.run(f"DROP DATABASE {name}")


@pytest.fixture
def old_project(mariadb: harness.MariaDB) -> Iterator[OldProject]:
    """A project's database with BOINC's tables, which are empty."""
    with database(mariadb) as project:
        yield project


@pytest.fixture
def science_united(mariadb: harness.MariaDB) -> Iterator[ScienceUnited]:
    """A Science United site's database, which is empty."""
    name = f"united{next(_NUMBERS)}"
    site = ScienceUnited.create(mariadb, name)
    yield site
    site.close()
    mariadb.run(f"DROP DATABASE {name}")


@pytest.fixture
def small_project(old_project: OldProject) -> OldProject:
    """The same with three years of a small project's life."""
    fill(old_project)
    return old_project


@pytest.fixture(scope="session")
def unchanged_project(mariadb: harness.MariaDB) -> Iterator[OldProject]:
    """The same for tests that only read it."""
    with database(mariadb) as project:
        fill(project)
        yield project
