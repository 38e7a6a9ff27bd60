"""Projects, and a signing key that clients can check their URLs with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django import Settings

from accounting.models import Project
from accounting.projects import signing_key
from accounting.rpc import catalogue
from tests.support.accounting_factories import make_project


@pytest.fixture(scope="session")
def key_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where this test run's signing key is kept: made once, as making one takes its time."""
    return tmp_path_factory.mktemp("keys")


@pytest.fixture
def signing_keys(key_folder: Path, settings: Settings) -> None:
    """The site has a signing key, private and public part."""
    settings.AM_SIGNING_KEY = key_folder / "private"
    settings.AM_SIGNING_KEY_PUBLIC = key_folder / "public"
    signing_key.make_if_missing()


@pytest.fixture
def projects(db: None, signing_keys: None) -> Iterator[list[Project]]:
    """Alpha, Beta and Gamma, which all computers are attached to unless their owner chose otherwise."""
    catalogue.forget()
    made = []
    for name in ("Alpha", "Beta", "Gamma"):
        url = f"https://{name.lower()}.example.org/science/"
        made.append(
            make_project(
                name=name,
                master_url=url,
                url_signature=signing_key.sign_url(url) or "",
                account_key=f"7_key_of_{name.lower()}",
            )
        )
    yield made
    catalogue.forget()
