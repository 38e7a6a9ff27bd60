"""Markers in charts of credit: changes of settings and other events that explain a step in a curve."""

from __future__ import annotations

import datetime as dt
from typing import NamedTuple

from portal.extras import site_apps


class Event(NamedTuple):
    """A time, the event in words, and the page with details ("" if there is none)."""

    at: dt.datetime
    label: str
    link: str = ""


def markers(app_id: int | None, since: dt.datetime, until: dt.datetime) -> list[Event]:
    """Return the events to mark in a chart of this app, or of all apps, oldest first."""
    return sorted(Event(*event) for app in site_apps() for event in app.credit_events(app_id, since, until))
