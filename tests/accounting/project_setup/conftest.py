"""A project as a small server of real sockets, and an operator's browser."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_network

import pytest
from django.test import Client
from pytest_django import Settings

from accounting.rpc import catalogue
from portal.models import User
from tests.support.fake_project import FakeProject


@pytest.fixture
def fake(settings: Settings) -> Iterator[FakeProject]:
    """A project on this machine, which may be asked."""
    settings.FETCH_ALLOWED_NETWORKS = [ip_network("127.0.0.0/8")]
    settings.FETCH_TIMEOUT_SECS = 60
    with FakeProject() as project:
        yield project


@pytest.fixture
def desk(client: Client, operator: User, signing_keys: None) -> Client:
    """An operator's browser."""
    client.force_login(operator)
    catalogue.forget()
    return client
