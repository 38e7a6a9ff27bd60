"""Computers with rows of their own for each scene, projects, and an app with a queue."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django import Settings

from accounting.models import Project
from accounting.projects import signing_key
from accounting.rpc import catalogue
from scheduler.programs import catalogue as programs
from scheduler.programs import code_signing
from tests.support.accounting_factories import make_project
from tests.support.simulated.clients import URLS

numbers = itertools.count(1)


@pytest.fixture(scope="session")
def key_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("keys")


@pytest.fixture(autouse=True)
def keys(key_folder: Path, settings: Settings) -> Iterator[None]:
    settings.AM_SIGNING_KEY = key_folder / "private"
    settings.AM_SIGNING_KEY_PUBLIC = key_folder / "public"
    settings.CODE_SIGNING_KEY = key_folder / "code_private"
    settings.CODE_SIGNING_KEY_PUBLIC = key_folder / "code_public"
    signing_key.make_if_missing()
    code_signing.make_if_missing()
    catalogue.forget()
    programs.forget()
    yield
    catalogue.forget()
    programs.forget()


@pytest.fixture
def projects(transactional_db: None) -> list[Project]:
    return [
        make_project(
            name=f"Project {number}",
            master_url=url,
            account_key=f"{number}_77aa6d2754819a30f128656675a452bb",
        )
        for number, url in enumerate(URLS)
    ]
