"""While an archived month cannot be read, pages that need it say so, and others work."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.test import Client

from accounting.models import Project
from portal.models import Host
from tests.support.archived_books import archive

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("address", ["/history/?from=2024-01-15&to=2024-03-10&step=day", "/history/days/2024-01-21/"])
def test_a_page_that_needs_it_says_that_nothing_is_lost(
    signed_in: Client, books: tuple[list[Host], list[Project]], folder: Path, address: str
) -> None:
    archive()
    assert signed_in.get(address).status_code == 200
    folder.rename(folder.with_name("away"))
    answer = signed_in.get(address)
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "300")
    assert "Nothing is lost" in answer.content.decode()
    assert signed_in.get("/history/").status_code == 200
    assert signed_in.get("/home/").status_code == 200


def test_programs_get_it_as_json(signed_in: Client, books: tuple[list[Host], list[Project]], folder: Path) -> None:
    archive()
    folder.rename(folder.with_name("away"))
    answer = signed_in.get("/api/v1/days/?from=2024-01-01&to=2024-02-01")
    assert answer.status_code == 503
    assert "Nothing is lost" in answer.json()["detail"]
