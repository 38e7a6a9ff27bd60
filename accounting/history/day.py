"""One day of a volunteer's history: what each computer did for each project, and the notes of that day in full."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Final

from django.core.paginator import Page, Paginator

from accounting.engine.amounts import NO_WORK, Totals
from accounting.history.sums import NO_FILTER, HistoryFilter
from accounting.ledger.texts import NoteLine, explain, flag_words
from accounting.models import Day, Note, Project
from portal.models import Host, User
from portal.people.access import own_hosts

ROWS_A_PAGE: Final = 200
MAX_NOTES: Final = 100


@dataclass(frozen=True, slots=True)
class Part:
    """One computer at one project on the day; a computer or project may be gone."""

    host: Host | None
    project: Project | None
    amounts: Totals
    flags: int

    @property
    def credit(self) -> int:
        return self.amounts.credit

    @property
    def colour(self) -> int:
        return self.project.data_colour if self.project else 0

    @property
    def notes(self) -> list[str]:
        return flag_words(self.flags)


@dataclass(frozen=True, slots=True)
class DayPage:
    """A day: a page of its parts, the sums of all of them, and its notes."""

    day: dt.date
    parts: Page[Part]
    totals: Totals
    notes: list[NoteLine]

    @property
    def credit(self) -> int:
        return self.totals.credit

    @property
    def before(self) -> dt.date | None:
        return self.day - dt.timedelta(days=1) if self.day > dt.date.min else None

    @property
    def after(self) -> dt.date:
        return self.day + dt.timedelta(days=1)


def read_day(user: User, day: dt.date, page: str) -> DayPage:
    """Read one of the user's days and a page of its parts, largest credit first; four statements."""
    rows = Day.objects.filter(user=user, day=day).order_by("project_id", "host_id")
    projects = {project.pk: project for project in Project.objects.all()}
    hosts = {host.pk: host for host in own_hosts(user)}
    totals = NO_WORK
    parts = []
    for row in rows:
        amounts = row.amounts
        totals = totals.plus(amounts)
        parts.append(Part(hosts.get(row.host_id), projects.get(row.project_id), amounts, row.flags))
    parts.sort(key=lambda part: (-part.credit, -part.amounts.run_time))
    page_of_parts = Paginator(parts, ROWS_A_PAGE).get_page(page)
    return DayPage(day, page_of_parts, totals, read_notes(user, day, day))


def read_notes(
    user: User, first: dt.date, last: dt.date, only: HistoryFilter = NO_FILTER, limit: int = MAX_NOTES
) -> list[NoteLine]:
    """Read the latest notes of these days as sentences; one statement."""
    notes = Note.objects.filter(host__owner=user, day__range=(first, last), **only.rows).select_related(
        "host", "project"
    )
    return [
        NoteLine(note, note.project, explain(note, note.project.name if note.project else ""))
        for note in notes.order_by("-day", "-last_at", "-pk")[:limit]
    ]
