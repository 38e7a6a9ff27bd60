"""The data of static/portal/figures.js, and the same numbers as a table."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final

from django.utils.translation import gettext_lazy as _

from portal.dashboard.reads import LongCourse
from portal.dashboard.registry import Figure, Unit

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

TABLE_ROWS: Final = 200
_SCALES: Final[dict[Unit, tuple[float, StrOrPromise]]] = {Unit.BYTES: (2**30, "GiB")}
_UNIT_NAMES: Final[dict[Unit, StrOrPromise]] = {
    Unit.SECS: _("seconds"),
    Unit.PERCENT: "%",
    Unit.CREDITS: _("credits"),
    Unit.FACTOR: _("factor"),
}


def scale(figure: Figure) -> tuple[float, str]:
    """The divisor for values on the figure's charts, and the resulting unit."""
    size, name = _SCALES.get(figure.unit, (1.0, _UNIT_NAMES.get(figure.unit, _("number"))))
    return size, f"{name} {figure.per}" if figure.per else str(name)


def chart_data(course: LongCourse) -> dict[str, Any]:
    """Return lines of (milliseconds of Unix time, value), the unit of the axis, and markers."""
    size, unit = scale(course.figure)
    return {
        "title": course.figure.title,
        "unit": unit,
        "since": course.since.timestamp() * 1000,
        "until": course.until.timestamp() * 1000,
        "series": [
            {"name": label or course.figure.title, "points": [[at * 1000, value / size] for at, value in points]}
            for label, points in course.series.items()
        ],
        "markers": [
            {"at": mark.at.timestamp() * 1000, "label": mark.label, "link": mark.link} for mark in course.markers
        ],
    }


def table_rows(course: LongCourse) -> list[tuple[dt.datetime, list[float | None]]]:
    """Return the latest times first, with a value of each series or None."""
    size, _unit = scale(course.figure)
    values = [dict(points) for points in course.series.values()]
    times = sorted({at for points in values for at in points}, reverse=True)[:TABLE_ROWS]
    return [
        (dt.datetime.fromtimestamp(at, dt.UTC), [by_time[at] / size if at in by_time else None for by_time in values])
        for at in times
    ]
