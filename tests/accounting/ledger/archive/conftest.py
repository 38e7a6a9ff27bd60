"""An archive of its own for each test, and books to put into it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from accounting.models import (
    GrantedDay,
    Project,
    Settlement,
)
from portal.models import Host, User
from tests.support.accounting_factories import credit, make_host
from tests.support.archived_books import (
    CREDIT,
    archive_in,
    make_history,
    roll_up,
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Iterator[Path]:
    with archive_in(tmp_path / "archive"):
        yield tmp_path / "archive"


@pytest.fixture
def books(alice: User, bob: User) -> tuple[list[Host], list[Project]]:
    """Alice's history, and some of Bob's, summed up; what projects granted is known of one computer."""
    hosts, projects = make_history(alice)
    credit(make_host(bob, "cellar", "2024-01-01", "2024-03-01"), projects[0], "2024-02-10", (5, 6, 7, 8, 9, 10))
    GrantedDay.objects.create(user=alice, day="2024-02-03", project=projects[0], host=hosts[0], credit=7 * CREDIT)
    GrantedDay.objects.create(user=alice, day="2024-02-04", project=projects[0], host=hosts[0], credit=8 * CREDIT)
    for host, project in ((hosts[0], projects[0]), (hosts[1], projects[0])):
        Settlement.objects.create(
            host=host, project=project, seen_on="2024-01-21", read_on="2026-11-20", estimated_before=40 * CREDIT,
            is_whole=False, granted=15 * CREDIT,
        )  # fmt: skip
    roll_up()
    return hosts, projects
