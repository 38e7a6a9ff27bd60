"""An operator's browser, and a machine with the key."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command
from django.test import Client
from pytest_django import Settings

from portal.models import User
from scheduler.models import ReleaseDraft
from tests.support.releases import BASE, MAIN
from tests.support.sessions import sign_in_lately


@pytest.fixture
def browser(client: Client, operator: User) -> Client:
    sign_in_lately(client, operator)
    return client


@pytest.fixture
def offline(tmp_path: Path, settings: Settings) -> Callable[[Client, ReleaseDraft], str]:
    """Signs a draft's manifest on another machine: what that prints. The site itself has no private key."""
    private, folder = settings.CODE_SIGNING_KEY, tmp_path / "own"
    settings.CODE_SIGNING_KEY = tmp_path / "none"
    folder.mkdir()
    (folder / "main.sh").write_bytes(MAIN)
    (folder / "table.txt").write_bytes(b"1 2 3\n")

    def sign(browser: Client, draft: ReleaseDraft) -> str:
        (tmp_path / "manifest.json").write_bytes(browser.get(f"{BASE}{draft.pk}/manifest.json").content)
        out = StringIO()
        settings.CODE_SIGNING_KEY = private
        try:
            call_command("sign_manifest", tmp_path / "manifest.json", folder, stdout=out)
        finally:
            settings.CODE_SIGNING_KEY = tmp_path / "none"
        return out.getvalue()

    return sign
