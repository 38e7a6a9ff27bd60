"""One number says which version of the software this is, and the documents of a release belong to it."""

from __future__ import annotations

import re
from pathlib import Path

from django.test import Client

from portal import __version__

ROOT = Path(__file__).resolve().parents[2]


def test_the_newest_version_of_the_changelog_is_the_softwares() -> None:
    versions = re.findall(r"^## \[(.*?)\] - (?:Unreleased|\d{4}-\d\d-\d\d)$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert versions[0] == __version__
    assert re.fullmatch(r"\d+\.\d+\.\d+", __version__)


def test_people_and_programs_can_read_the_version(client: Client, db: None) -> None:
    assert f"Cobblestone {__version__}" in client.get("/").content.decode()
    element = f"<cobblestone_version>{__version__}</cobblestone_version>"
    assert element in client.get("/get_project_config.php").content.decode()


def test_no_licence_is_chosen_as_long_as_there_is_no_file_of_one() -> None:
    assert ("No licence is chosen yet" in (ROOT / "README.md").read_text()) != (ROOT / "LICENSE").exists()
