"""Which figures there are. Each app adds panels and sources in ``ready()``, for the rooms that the site has."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from django.utils.translation import gettext_lazy as _

from portal.dashboard.rules import Points, Trouble
from portal.languages.stored import translated

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


class Unit(StrEnum):
    """What a value counts; pages write each in its own way."""

    NUMBER = ""
    SECS = "s"
    BYTES = "bytes"
    PERCENT = "%"
    CREDITS = "credits"
    FACTOR = "factor"


class Combine(StrEnum):
    """How the series of a figure become the one value of its tile."""

    SUM = "sum"
    MAX = "max"
    MIN = "min"
    MEAN = "mean"


class Sample(NamedTuple):
    """A value of a figure; ``label``: of which app, queue, version and so on."""

    name: str
    value: float
    label: str = ""


class Marker(NamedTuple):
    """Something that happened, drawn into charts as a line: when, in words, and where to read more."""

    at: dt.datetime
    label: StrOrPromise
    link: str = ""


History = Callable[[dt.datetime, dt.datetime], dict[str, Points]]
Markers = Callable[[dt.datetime, dt.datetime], Sequence[Marker]]


words: Final[list[str]] = []
"""Marked texts that labels of series and cells of tables are made of. Each app adds its own when it is ready."""


def label_text(label: str) -> str:
    """A label or cell, as it was kept in English, in the page's language; names of things as they are."""
    return translated(label, [label] if label in words else words)


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of the dashboard.

    ``link``: a view of the admin and its query, "admin:credit_workunit_changelist?need_validate__exact=1".
    ``per_secs``: it is a counter, shown as its growth in this many seconds; ``per`` says so in words.
    ``history`` gives long charts from elsewhere; without it they show the values taken. ``label_text`` shows a label,
    which is kept in English, in the page's language.
    """

    name: str
    title: StrOrPromise
    unit: Unit = Unit.NUMBER
    about: StrOrPromise = ""
    link: str = ""
    link_text: StrOrPromise = _("Show them")
    combine: Combine = Combine.SUM
    per_secs: float = 0
    per: StrOrPromise = ""
    series: StrOrPromise = ""
    trouble: Trouble | None = None
    history: History | None = None
    markers: Markers | None = None
    label_text: Callable[[str], str] = label_text


@dataclass(frozen=True, slots=True)
class Table:
    """A short table below a panel's figures: its columns. Rows are lists of texts, of (text, address), of times
    (portal.dashboard.record.moment), and of {"number", "all"}: this many of all.
    """

    name: str
    title: StrOrPromise
    columns: tuple[StrOrPromise, ...]
    empty: StrOrPromise
    permission: str = ""  # of those who see it; empty: whoever sees the dashboard


@dataclass(frozen=True, slots=True)
class Panel:
    """A part of the dashboard."""

    key: str
    title: StrOrPromise
    place: int
    about: StrOrPromise = ""


@dataclass(frozen=True, slots=True)
class Source:
    """Figures that are taken together, and tables. ``take`` is called by a task, so it may take seconds."""

    panel: str
    figures: tuple[Figure, ...]
    take: Callable[[dt.datetime], Iterable[Sample]]
    tables: tuple[Table, ...] = ()
    take_tables: Callable[[dt.datetime], dict[str, list[list[object]]]] | None = None


class Daemon(NamedTuple):
    """A part of the site as the public status names it, and the periodic task that shows that it runs ("": the web)."""

    command: str
    task: str = ""


daemons: Final[list[Daemon]] = []
panels: Final[dict[str, Panel]] = {}
sources: Final[list[Source]] = []


def add_panel(panel: Panel) -> None:
    panels[panel.key] = panel


def add_source(source: Source) -> None:
    sources.append(source)


def figure(name: str) -> Figure | None:
    """The figure of this name."""
    return next((each for source in sources for each in source.figures if each.name == name), None)


def figures_of(panel: str) -> list[Figure]:
    return [each for source in sources if source.panel == panel for each in source.figures]


def tables_of(panel: str) -> list[Table]:
    return [each for source in sources if source.panel == panel for each in source.tables]
