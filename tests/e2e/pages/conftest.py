"""Tests of pages share one site, as starting one takes longer than most of them.

Clients' requests are no matter for these tests: they are answered from what the site has read some seconds ago, which
may be of the test before.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.site_process import Site


@pytest.fixture(scope="session")
def shared_site(site_var_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, Path]]:
    """The site of all these tests of a test process, and its log."""
    log = tmp_path_factory.mktemp("pages") / "site.log"
    with Site(site_var_dir, log) as running:
        yield running, log


@pytest.fixture
def site(transactional_db: None, shared_site: tuple[Site, Path], tmp_path: Path) -> Site:
    running, log = shared_site
    # For the report of a test that fails
    (tmp_path / "site.log").symlink_to(log)
    return running
