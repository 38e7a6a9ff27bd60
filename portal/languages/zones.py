"""The visitor's time zone, for times on pages.

Django's own current time zone stays UTC: days of credit are UTC days, and queries by day must not depend on the reader.
Only the filters that show times use this one.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

COOKIE: Final = "time_zone"
"""Set by static/portal/site.js to the browser's zone."""
_NO_PLACES: Final = ("Etc/", "SystemV/", "US/", "Brazil/", "Canada/", "Chile/", "Mexico/")
_zone: ContextVar[ZoneInfo | None] = ContextVar("visitor_zone", default=None)


@cache
def names() -> list[str]:
    """The zones on offer: UTC, and those that are named after a place."""
    return ["UTC", *sorted(name for name in available_timezones() if "/" in name and not name.startswith(_NO_PLACES))]


@cache
def _known() -> frozenset[str]:
    return frozenset(available_timezones())


def zone_named(name: str) -> ZoneInfo | None:
    """The zone with this name; None for anything else, such as a path that a visitor made up."""
    return ZoneInfo(name) if name in _known() else None


def current_zone() -> ZoneInfo | None:
    """The zone of the person who gets this page; None if it is unknown."""
    return _zone.get()


@contextmanager
def shown_in(zone: ZoneInfo | None) -> Iterator[None]:
    """Show times in this zone."""
    before = _zone.set(zone)
    try:
        yield
    finally:
        _zone.reset(before)


def local(moment: dt.datetime) -> dt.datetime:
    """The time in the visitor's zone, or in UTC if that is unknown."""
    return moment.astimezone(_zone.get() or dt.UTC)
