"""A volunteer's days row by row, for downloads and the REST API.

Rows are read page by page along the table's key. So a history of any length takes the same memory, and a page deep in
it costs what the first one does. Amounts are whole numbers of 1e-6 credits or seconds, and plain counts of jobs.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from django.db import connection

from accounting.engine.amounts import KINDS, Totals
from accounting.engine.states import DayFlag
from accounting.models import Day, Project
from portal.models import Host, User

PAGE_ROWS: Final = 2_000
_FLAG_NAMES: Final = [(flag.value, name.lower()) for name, flag in DayFlag.__members__.items()]

Place = tuple[dt.date, int, int]
"""The place of a row: day, project, computer; rows come in this order."""


@dataclass(frozen=True, slots=True)
class DayRow:
    """What one computer was credited at one project on one day; ``flags`` are a `DayFlag`."""

    day: dt.date
    project_id: int
    host_id: int
    amounts: Totals
    flags: int

    @property
    def place(self) -> Place:
        return self.day, self.project_id, self.host_id


@dataclass(frozen=True, slots=True)
class Names:
    """The names behind the ids in rows: projects (name, master URL) and the volunteer's computers (name)."""

    projects: dict[int, tuple[str, str]]
    hosts: dict[int, str]

    def project(self, id_: int) -> str:
        return self.projects.get(id_, (f"project {id_}, no longer known", ""))[0]

    def project_url(self, id_: int) -> str:
        return self.projects.get(id_, ("", ""))[1]

    def host(self, id_: int) -> str:
        return self.hosts.get(id_, f"computer {id_}, no longer known")


@dataclass(frozen=True, slots=True)
class DayRange:
    """Which rows: from one day to another, both included; of one project or computer only, if given."""

    first: dt.date
    last: dt.date
    project_id: int | None = None
    host_id: int | None = None


def read_names(user: User) -> Names:
    """All that the user's rows can name; two statements."""
    projects = {pk: (name, url) for pk, name, url in Project.objects.values_list("pk", "name", "master_url")}
    hosts = Host.objects.filter(owner=user).only("pk", "given_name", "domain_name")
    return Names(projects, {host.pk: host.name for host in hosts})


def read_page(user: User, wanted: DayRange, after: Place | None = None, limit: int = PAGE_ROWS) -> list[DayRow]:
    """The next ``limit`` rows after a place, oldest day first; one statement."""
    first = max(wanted.first, after[0]) if after else wanted.first
    rows = Day.objects.filter(user=user, day__range=(first, wanted.last))
    if after is not None:
        rows = rows.filter(pk__gt=(user.pk, *after))
    if wanted.project_id is not None:
        rows = rows.filter(project_id=wanted.project_id)
    if wanted.host_id is not None:
        rows = rows.filter(host_id=wanted.host_id)
    found = rows.order_by("day", "project_id", "host_id").values_list(
        "day",
        "project_id",
        "host_id",
        *KINDS,
        "flags",
    )
    return [
        DayRow(day, project, host, Totals(*amounts), flags) for day, project, host, *amounts, flags in found[:limit]
    ]


def read_pages(user: User, wanted: DayRange, page_rows: int = PAGE_ROWS) -> Iterator[list[DayRow]]:
    """All rows, a page at a time.

    The database connection is closed between the pages, so that a slow download does not occupy it.
    """
    after: Place | None = None
    while True:
        page = read_page(user, wanted, after, page_rows)
        close_connection()
        if page:
            yield page
        if len(page) < page_rows:
            return
        after = page[-1].place


def close_connection() -> None:
    """Close the database connection until the next statement, unless it is in a transaction."""
    if not connection.in_atomic_block:
        connection.close()


def flag_names(flags: int) -> list[str]:
    """The flags of a day as documented words: ["capped", "speed_unknown"]."""
    return [name for bit, name in _FLAG_NAMES if flags & bit]
