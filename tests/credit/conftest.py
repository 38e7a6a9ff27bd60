"""The computers of four volunteers."""

from __future__ import annotations

import pytest

from portal.models import Host
from tests.support.validator_runs import volunteers


@pytest.fixture
def hosts(db: None) -> list[Host]:
    return volunteers(4)
