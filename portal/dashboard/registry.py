"""The registry of figures: those of the apps in use (`portal.extras.SiteApp.figures`)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.db import connection
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from portal.dashboard.rules import Points, Trouble
from portal.extras import apps_in_use
from portal.languages.sentences import unpacked

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


class Unit(StrEnum):
    """What a value counts, and so how pages write it."""

    NUMBER = ""
    SECS = "s"
    BYTES = "bytes"
    PERCENT = "%"
    CREDITS = "credits"
    FACTOR = "factor"


class Combine(StrEnum):
    """How the series of a figure are combined into the one value of its tile."""

    SUM = "sum"
    MAX = "max"
    MIN = "min"
    MEAN = "mean"


_USUAL: Final = {Unit.SECS: Combine.MAX, Unit.PERCENT: Combine.MAX, Unit.FACTOR: Combine.MEAN}


class Sample(NamedTuple):
    """A value of a figure; ``label``: the app, queue, version and so on that it belongs to."""

    name: str
    value: float
    label: str = ""


class Marker(NamedTuple):
    """Something that happened, drawn into charts as a line: when, in words, and where to read more."""

    at: dt.datetime
    label: StrOrPromise
    link: str = ""


class Metric(NamedTuple):
    """A figure as Prometheus reads it: the gauge's name, its help, and what its series are ("": there is one)."""

    figure: str
    name: str
    about: str
    series: str = ""


History = Callable[[dt.datetime, dt.datetime], dict[str, Points]]
Markers = Callable[[dt.datetime, dt.datetime], Sequence[Marker]]
Rows = list[list[object]]


def label_text(label: str) -> str:
    """Translate a label or cell, which is stored in English, into the page's language; names stay as they are.

    Words of ours may also be the end of a label, after a name.
    """
    name, comma, last = label.rpartition(", ")
    is_ours = any(last in part.words for part in parts())
    return f"{name}{comma}{gettext(last)}" if is_ours else unpacked(label)


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of the dashboard.

    ``link``: a view of the admin and its query, "admin:credit_workunit_changelist?need_validate__exact=1".
    ``combine``: how its series become one value; None: the usual way for the unit.
    ``per_secs``: it is a counter, shown as its growth in this many seconds; ``per`` says so in words.
    ``history`` gives long charts from elsewhere; without it they show the values taken. ``label_text`` translates a
    label, which is stored in English, into the page's language.
    """

    name: str
    title: StrOrPromise = ""
    unit: Unit = Unit.NUMBER
    about: StrOrPromise = ""
    link: str = ""
    link_text: StrOrPromise = _("Show them")
    combine: Combine | None = None
    per_secs: float = 0
    per: StrOrPromise = ""
    series: StrOrPromise = ""
    trouble: Trouble | None = None
    history: History | None = None
    markers: Markers | None = None
    label_text: Callable[[str], str] = label_text

    @property
    def how(self) -> Combine:
        """How its series become one value."""
        return self.combine or _USUAL.get(self.unit, Combine.SUM)


per_minute = partial(Figure, per_secs=60, per=_("per minute"))
per_hour = partial(Figure, per_secs=3600, per=_("per hour"))


Reading = Callable[[dt.datetime], Iterable[Sample]]
"""Reads figures together, in a task, so it may take seconds: a `FigureQuery`, or a function if SQL is not enough."""


@dataclass(frozen=True, slots=True)
class FigureQuery(Collector):
    """A statement that reads figures; its parameter is ``now``.

    Each of its columns is named after a figure, except ``key``, which distinguishes several rows. NULL is no value.
    ``labels``: how keys are shown. A key without a label is left out, and a label without a row is 0, or missing if
    ``is_sparse``.
    """

    sql: str
    labels: Callable[[], Mapping[Any, str]] | None = None
    is_sparse: bool = False
    metrics: tuple[Metric, ...] = ()

    def __call__(self, now: dt.datetime) -> Iterator[Sample]:
        columns, rows = self._execute(now)
        nothing = dict.fromkeys(columns, None if self.is_sparse else 0.0)
        for key, label in (self.labels() if self.labels else {key: str(key) for key in rows}).items():
            for name, value in rows.get(key, nothing).items():
                if value is not None:
                    yield Sample(name, float(value), label)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """The present values of these figures as metrics. Their series have keys, not labels."""
        _columns, rows = self._execute(timezone.now())
        for figure, name, about, series in self.metrics:
            gauge = GaugeMetricFamily(name, about, labels=[series] if series else [])
            for key in self.labels() if self.labels else rows:
                gauge.add_metric([str(key)] if series else [], rows.get(key, {}).get(figure) or 0)
            yield gauge

    def _execute(self, now: dt.datetime) -> tuple[list[str], dict[Any, dict[str, float | None]]]:
        with connection.cursor() as cursor:
            cursor.execute(self.sql, {"now": now})
            columns = [column.name for column in cursor.description]
            rows = [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]
        return [column for column in columns if column != "key"], {row.pop("key", ""): row for row in rows}


@dataclass(frozen=True, slots=True)
class Table:
    """A short table: its columns, and what reads it. Rows are lists of texts, of (text, address), of times
    (portal.dashboard.record.moment), and of {"number", "all"}: a number out of a total.
    """

    name: str
    read: Callable[[dt.datetime], Rows]
    title: StrOrPromise = ""
    columns: tuple[StrOrPromise, ...] = ()
    empty: StrOrPromise = ""
    permission: str = ""  # needed to see it; empty: anyone who sees the dashboard does


class Daemon(NamedTuple):
    """A part of the site as the public status names it, and the periodic task that proves it runs ("": the web)."""

    command: str
    task: str = ""


class Part(NamedTuple):
    """What an app adds to a panel of the dashboard, and to the public status.

    ``words``: marked texts that occur in labels of series and cells of tables.
    """

    panel: str
    figures: Sequence[Figure] = ()
    readings: Sequence[Reading] = ()
    tables: Sequence[Table] = ()
    words: Iterable[str] = ()
    daemons: Sequence[Daemon] = ()


@dataclass(frozen=True, slots=True)
class Panel:
    """A part of the dashboard or, without a title, of the public status only."""

    title: StrOrPromise = ""
    figures: list[Figure] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)


_TITLES: Final[dict[str, StrOrPromise]] = {
    "services": _("Processes and services"),
    "jobs": _("Jobs"),
    "credit": _("Credit"),
    "account_manager": _("Account manager"),
    "status": "",
}


def parts() -> list[Part]:
    """The parts of all apps in use."""
    return [part for app in apps_in_use() for part in app.figures()]


def panels() -> dict[str, Panel]:
    """The panels by name, in the order of the dashboard."""
    by_name = {name: Panel(title) for name, title in _TITLES.items()}
    for part in parts():
        panel = by_name[part.panel]
        panel.figures.extend(part.figures)
        panel.readings.extend(part.readings)
        panel.tables.extend(part.tables)
    return by_name


def collectors() -> list[FigureQuery]:
    """The statements with metrics, which Prometheus reads, too."""
    return [
        reading for part in parts() for reading in part.readings if isinstance(reading, FigureQuery) and reading.metrics
    ]


def figure(name: str) -> Figure | None:
    """The figure of this name."""
    return next((figure for part in parts() for figure in part.figures if figure.name == name), None)
