"""An app with a version, and computers of four volunteers."""

from __future__ import annotations

import pytest

from credit.models import App, AppVersion
from portal.models import Host
from tests.support.credit_factories import make_app, make_version
from tests.support.validator_runs import volunteers


@pytest.fixture
def app() -> App:
    return make_app()


@pytest.fixture
def version(app: App) -> AppVersion:
    return make_version(app)


@pytest.fixture
def hosts(db: None) -> list[Host]:
    return volunteers(4)
