"""Let this machine receive alerts, with its own certificate."""

from __future__ import annotations

import ssl
from ipaddress import ip_network
from pathlib import Path

import pytest
from pytest_django import Settings

from tests.support.certificates import make_certificate, server_context


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def tls(certificate: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    settings.FETCH_ALLOWED_NETWORKS = [ip_network("127.0.0.0/8")]
    return server_context(certificate)
