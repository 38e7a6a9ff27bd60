"""What charts of credit mark: changes of settings and whatever else explains a step in a curve."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple


class Event(NamedTuple):
    """When it happened, in words, and the page that has more ("" if there is none)."""

    at: dt.datetime
    label: str
    link: str = ""


EventSource = Callable[[int | None, dt.datetime, dt.datetime], Iterable[Event]]
event_sources: Final[list[EventSource]] = []
"""Functions that are given an app's number (None: of all apps), and the time from which and until which to look."""


def markers(app_id: int | None, since: dt.datetime, until: dt.datetime) -> list[Event]:
    """What is to be marked in a chart of this app, or of all apps, oldest first."""
    return sorted(event for source in event_sources for event in source(app_id, since, until))
