"""What other apps show on the page of a computer, which the account manager makes."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass

from portal.models import Host


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page: its template, in which ``section`` is this one, and its rows."""

    template: str
    rows: list[object]


host_sections: list[Callable[[Host, dt.datetime], Section | None]] = []
"""Called with the computer and the time; None: nothing to show. Apps append theirs in `ready()`."""
