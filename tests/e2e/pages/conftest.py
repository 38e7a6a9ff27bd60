"""Tests of pages ask nothing as clients do."""

from __future__ import annotations

import pytest

from tests.support.site_process import Site


@pytest.fixture
def site(site_of_pages: Site) -> Site:
    return site_of_pages
