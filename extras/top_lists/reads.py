"""Read pages of top lists, a fixed number of statements each."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from django.db import connection
from django.utils.translation import gettext as _

from credit.models import App, Team
from extras.top_lists import sql

PAGE_ROWS: Final = 50
MAX_PAGES: Final = 200
"""So nobody makes the database skip more than ten thousand rows."""
ORDERS: Final = {"total": "total_credit", "recent": "recent_credit"}
_SHOWN_CHARS: Final = 20


@dataclass(slots=True)
class Choice:
    """The choices of an address. Invalid ones are left out, and a sentence says so."""

    by: str = "total"
    app: App | None = None
    page: int = 1
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ListRow:
    """A row of a list: a volunteer, with their team if they are in one, or a team. No name: none was chosen."""

    place: int
    id: int
    name: str | None
    team_id: int | None
    team: str | None
    total_credit: float
    # None: unknown for a single app, or for a team's member
    recent_credit: float | None
    counted_at: dt.datetime
    nmembers: int = 0


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a list. ``more``: another one follows."""

    rows: list[ListRow]
    number: int
    more: bool

    @property
    def previous(self) -> int:
        return self.number - 1

    @property
    def next(self) -> int:
        return self.number + 1


def read_choice(params: Mapping[str, str], *, has_apps: bool = False) -> Choice:
    """Read the choices of an address; a statement for an app."""
    choice = Choice()
    if (by := params.get("by", "total")) in ORDERS:
        choice.by = by
    else:
        choice.problems.append(
            _("“%(text)s” is not an order of this list. Available: %(known)s. The list is sorted by total credit.")
            % {"text": by[:_SHOWN_CHARS], "known": ", ".join(ORDERS)}
        )
    if has_apps and (name := params.get("app", "")):
        # PostgreSQL has no text with a NUL.
        choice.app = App.objects.filter(name=name).first() if "\0" not in name else None
        if choice.app is None:
            choice.problems.append(
                _("“%(text)s” is not an app of this project. Credit for all apps is shown.")
                % {"text": name[:_SHOWN_CHARS]}
            )
    text = params.get("page", "1")
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
    if 1 <= number <= MAX_PAGES:
        choice.page = number
    else:
        choice.problems.append(
            _("“%(text)s” is not a page from 1 to %(most)s. The first page is shown.")
            % {"text": text[:_SHOWN_CHARS], "most": MAX_PAGES}
        )
    return choice


def volunteers(choice: Choice) -> Page:
    """Read a page of the volunteers who agreed to be shown."""
    if choice.app is not None:
        return _read(sql.VOLUNTEERS_OF_APP, choice, app=choice.app.pk)
    return _read(sql.VOLUNTEERS.format(by=ORDERS[choice.by]), choice)


def teams(choice: Choice) -> Page:
    return _read(sql.TEAMS.format(by=ORDERS[choice.by]), choice)


def members(team: Team, choice: Choice) -> Page:
    """Read a page of a team's members who agreed to be shown, with the credit granted since they joined."""
    return _read(sql.MEMBERS, choice, team=team.pk)


def founder(team: Team) -> tuple[str | None] | None:
    """Return the name of a founder who agreed to be shown, as a tuple, as they may have none; None for any other."""
    if team.founder_id is None:
        return None
    with connection.cursor() as cursor:
        cursor.execute(sql.FOUNDER, {"user": team.founder_id})
        row = cursor.fetchone()
    return (row[0],) if row is not None else None


def _read(statement: str, choice: Choice, **params: Any) -> Page:
    offset = (choice.page - 1) * PAGE_ROWS
    with connection.cursor() as cursor:
        cursor.execute(statement, {"limit": PAGE_ROWS + 1, "offset": offset, **params})
        entries = cursor.fetchall()
    rows = [ListRow(offset + place, *row) for place, row in enumerate(entries[:PAGE_ROWS], 1)]
    return Page(rows, choice.page, len(entries) > PAGE_ROWS and choice.page < MAX_PAGES)
