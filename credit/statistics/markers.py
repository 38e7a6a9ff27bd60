"""What charts of credit mark: changes of settings and whatever else explains a step in a curve."""

from __future__ import annotations

import datetime as dt
from typing import NamedTuple

from portal.extras import site_apps


class Event(NamedTuple):
    """When it happened, in words, and the page that has more ("" if there is none)."""

    at: dt.datetime
    label: str
    link: str = ""


def markers(app_id: int | None, since: dt.datetime, until: dt.datetime) -> list[Event]:
    """What is to be marked in a chart of this app, or of all apps, oldest first."""
    return sorted(Event(*event) for app in site_apps() for event in app.credit_events(app_id, since, until))
