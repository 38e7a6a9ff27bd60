"""A volunteer's days row by row, for downloads and the REST API: what was reported, and what projects granted.

Rows are read page by page along the tables' keys. So a history of any length takes the same memory, and a page deep in
it costs what the first one does. Amounts are whole numbers of 1e-6 credits or seconds, and plain counts of jobs.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

from django.db import connection
from django.db.models import QuerySet

from accounting.engine.amounts import KINDS, NO_WORK, Processor, Totals
from accounting.engine.states import DayFlag
from accounting.models import Day, GrantedDay, Project, Settlement
from credit.app_history import reads as app_history
from portal.models import Host, User

PAGE_ROWS: Final = 2_000
_FLAG_NAMES: Final = [(flag.value, name.lower()) for name, flag in DayFlag.__members__.items()]

_PLACE: Final = ("day", "project_id", "host_id")
Place = tuple[dt.date, int, int]
"""The position of a row: day, project, computer; rows come in this order."""


@dataclass(frozen=True, slots=True)
class DayRow:
    """What one computer was credited at one project on one day; ``flags`` are a `DayFlag`.

    ``granted``: what the project's statistics of that day granted; None if nothing.
    """

    day: dt.date
    project_id: int
    host_id: int
    amounts: Totals
    flags: int
    granted: int | None = None

    @property
    def place(self) -> Place:
        return self.day, self.project_id, self.host_id


@dataclass(frozen=True, slots=True)
class Names:
    """The names behind the ids in rows: projects (name, master URL) and the volunteer's computers (name).

    ``grants_known``: by project and computer, the days after the first and through the second have all of their grants.
    """

    projects: dict[int, tuple[str, str]]
    hosts: dict[int, str]
    grants_known: dict[tuple[int, int], tuple[dt.date, dt.date]] = field(default_factory=dict)

    def project(self, id_: int) -> str:
        return self.projects.get(id_, (f"project {id_}, no longer known", ""))[0]

    def project_url(self, id_: int) -> str:
        return self.projects.get(id_, ("", ""))[1]

    def host(self, id_: int) -> str:
        return self.hosts.get(id_, f"computer {id_}, no longer known")

    def granted(self, row: DayRow) -> int | None:
        """Return the micro-credits granted on that day; None where no grants are known."""
        if row.granted is not None:
            return row.granted
        after, last = self.grants_known.get((row.project_id, row.host_id), (dt.date.max, dt.date.max))
        return 0 if after < row.day <= last else None


@dataclass(frozen=True, slots=True)
class DayRange:
    """Which rows: from one day to another, inclusive; of one project or computer only, if given.

    ``processor``: amounts of CPUs or GPUs only, without grants, as projects do not say where jobs ran. ``app_id``: of
    an app of this site's own project, which is then ``project_id``; all credit is granted credit.
    """

    first: dt.date
    last: dt.date
    project_id: int | None = None
    host_id: int | None = None
    processor: Processor | None = None
    app_id: int | None = None

    @property
    def only(self) -> dict[str, int]:
        """Return the conditions for rows of days, except those on the days, by field."""
        named = {"project_id": self.project_id, "host_id": self.host_id}
        return {name: pk for name, pk in named.items() if pk is not None}


def read_names(user: User, day_range: DayRange | None = None) -> Names:
    """Read all names that the user's rows can need; three statements at most."""
    projects = {pk: (name, url) for pk, name, url in Project.objects.values_list("pk", "name", "master_url")}
    hosts = Host.objects.filter(owner=user).only("pk", "given_name", "domain_name")
    names = Names(projects, {host.pk: host.name for host in hosts})
    if day_range is not None and day_range.processor is not None:
        return names
    settlements = Settlement.objects.filter(host__owner=user)
    for row in settlements.only("project_id", "host_id", "is_whole", "seen_on", "read_on"):
        after = dt.date.min if row.is_whole else row.seen_on
        names.grants_known[row.project_id, row.host_id] = after, row.read_on
    return names


def count_rows(user: User, day_range: DayRange, most: int | None = None) -> int:
    """Count the rows, up to ``most``; one statement."""
    if day_range.app_id is not None:
        return len(_of_app(user, day_range, None, most))
    rows = _places(Day.objects.all(), user, day_range, None).values_list(*_PLACE)[:most]
    if day_range.processor is None:
        rows = rows.union(_places(GrantedDay.objects.all(), user, day_range, None).values_list(*_PLACE)[:most])
    number = rows.count()
    return number if most is None else min(number, most)


def read_page(user: User, day_range: DayRange, after: Place | None = None, limit: int = PAGE_ROWS) -> list[DayRow]:
    """Read the next ``limit`` rows after a position, oldest day first; two statements at most, one for an app."""
    if day_range.app_id is not None:
        return _of_app(user, day_range, after, limit)
    days = _places(Day.objects.all(), user, day_range, after).values_list(*_PLACE, *KINDS, "flags")[:limit]
    reported = [DayRow(day, project, host, Totals(*amounts), flags) for day, project, host, *amounts, flags in days]
    if day_range.processor is not None:
        part = day_range.processor.part
        return [replace(row, amounts=part(row.amounts)) for row in reported]
    grants = _places(GrantedDay.objects.all(), user, day_range, after).values_list(*_PLACE, "credit")[:limit]
    rows = {row.place: row for row in reported}
    for day, project, host, granted in grants:
        row = rows.get((day, project, host)) or DayRow(day, project, host, NO_WORK, 0)
        rows[row.place] = replace(row, granted=granted)
    # Each of the two queries has its own first rows, so the first of both together are among them.
    return [rows[place] for place in sorted(rows)[:limit]]


def _of_app(user: User, day_range: DayRange, after: Place | None, limit: int | None) -> list[DayRow]:
    """Read the next rows of an app, each a computer's day."""
    project_id = day_range.project_id or 0
    tasks = app_history.AppDays(user.pk, day_range.app_id or 0, day_range.first, day_range.last, day_range.host_id)
    rows = []
    for work in app_history.read_days(tasks, limit, (after[0], after[2]) if after else None):
        amounts = Totals(*work.amounts)
        if day_range.processor is not None:
            amounts = day_range.processor.part(amounts)
        rows.append(DayRow(work.start, project_id, work.host_id, amounts, 0, amounts.cpu_ec + amounts.gpu_ec))
    return rows


def _places(rows: QuerySet[Any], user: User, day_range: DayRange, after: Place | None) -> QuerySet[Any]:
    """Return the rows of the range after a position, in their order."""
    first = max(day_range.first, after[0]) if after else day_range.first
    places = rows.filter(user=user, day__range=(first, day_range.last), **day_range.only)
    if after is not None:
        places = places.filter(pk__gt=(user.pk, *after))
    return places.order_by(*_PLACE)


def read_pages(user: User, day_range: DayRange, page_rows: int = PAGE_ROWS) -> Iterator[list[DayRow]]:
    """Yield all rows, a page at a time.

    The database connection is closed between the pages, so that a slow download does not occupy it.
    """
    after: Place | None = None
    while True:
        page = read_page(user, day_range, after, page_rows)
        close_connection()
        if page:
            yield page
        if len(page) < page_rows:
            return
        after = page[-1].place


def close_connection() -> None:
    """Close the connection until the next statement, unless it is in a transaction."""
    if not connection.in_atomic_block:
        connection.close()


def flag_names(flags: int) -> list[str]:
    """Return the flags of a day as documented words: ["capped", "speed_unknown"]."""
    return [name for bit, name in _FLAG_NAMES if flags & bit]
