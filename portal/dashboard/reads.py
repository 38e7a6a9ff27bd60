"""Reads what the dashboard's pages show: tiles, what needs attention, long charts. Counts nothing."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.db import connection
from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from redis import RedisError

from portal import beat
from portal.dashboard import registry, sql
from portal.dashboard.registry import Combine, Figure, Marker, Panel
from portal.dashboard.rules import Course, Points, combine, rates
from portal.dashboard.texts import span, task_trouble
from portal.models import OperatingTable
from portal.ops import heartbeats, metrics
from portal.periodic.titles import task_title

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

DAY: Final = dt.timedelta(days=1)
STALE: Final = dt.timedelta(minutes=25)
"""Figures older than this were not taken when they should have been: they are due every ten minutes."""
MAX_POINTS: Final = 400
MAX_SERIES: Final = 8
_HOW: Final[dict[Combine, Callable[[Iterable[float]], float]]] = {
    Combine.SUM: sum,
    Combine.MAX: max,
    Combine.MIN: min,
    Combine.MEAN: lambda values: (lambda numbers: sum(numbers) / len(numbers))(list(values)),
}


class Tile(NamedTuple):
    """A figure as the dashboard shows it: its value, its series that are not 0, the last day, and any problem."""

    figure: Figure
    value: float | None
    parts: list[tuple[str, float]]
    points: Points
    trouble: str
    link: str


class TaskLine(NamedTuple):
    """A periodic task: its runs, how often it is due, and any problem."""

    run: metrics.TaskRuns
    title: str
    every: str
    trouble: str


class TableView(NamedTuple):
    """A table with its rows as last taken."""

    table: registry.Table
    rows: list[list[Any]]


class PanelView(NamedTuple):
    """A panel with its tiles, those with problems first."""

    key: str
    panel: Panel
    tiles: list[Tile]
    tables: list[TableView]


class Attention(NamedTuple):
    """Something that an operator should look at: where it is from, what it is, and what is behind it."""

    panel: StrOrPromise
    sentence: str
    link: str = ""
    link_text: StrOrPromise = gettext_lazy("Show it")


@dataclass(frozen=True, slots=True)
class Overview:
    """Everything on the dashboard."""

    now: dt.datetime
    taken_at: dt.datetime | None
    attention: list[Attention]
    panels: list[PanelView]
    tasks: list[TaskLine]
    processes: list[heartbeats.Process] = field(default_factory=list)
    beat_holder: str = ""


def overview(now: dt.datetime, has_perm: Callable[[str], bool]) -> Overview:
    """Read the dashboard with three statements and two questions to Valkey, however many figures there are.

    ``has_perm``: whether the reader has a permission, for tables that name computers.
    """
    courses, taken_at = _last_day(now)
    tables = {row.name: row for row in OperatingTable.objects.all()}
    attention = _stale(now, taken_at)
    tasks, processes = _live(now, attention)
    beat_holder = _beat_holder(attention)
    panels = []
    for key, panel in registry.panels().items():
        if not panel.figures:
            continue
        tiles = [_tile(figure, courses.get(figure.name, {}), taken_at) for figure in panel.figures]
        tiles = [tile for tile in tiles if tile.points or not courses]
        attention += [
            Attention(panel.title, tile.trouble, tile.link or history_address(tile.figure.name), tile.figure.link_text)
            for tile in tiles
            if tile.trouble
        ]
        tiles.sort(key=lambda tile: not tile.trouble)
        visible_tables = [
            TableView(table, tables[table.name].rows)
            for table in panel.tables
            if table.name in tables and (not table.permission or has_perm(table.permission))
        ]
        panels.append(PanelView(key, panel, tiles, visible_tables))
    return Overview(now, taken_at, attention, panels, tasks, processes, beat_holder)


def _last_day(now: dt.datetime) -> tuple[dict[str, dict[str, list[tuple[float, float]]]], dt.datetime | None]:
    """The points of the last day by figure and label, one an hour, and when the latest was taken."""
    with connection.cursor() as cursor:
        cursor.execute(sql.LAST_DAY, {"since": now - DAY, "now": now})
        rows = cursor.fetchall()
    # Oldest first, so the last time of each hour stays.
    last = {(name, at // 3600): at for name, _label, at, _value in rows}
    values: dict[str, dict[str, list[tuple[float, float]]]] = defaultdict(lambda: defaultdict(list))
    for name, label, at, value in rows:
        if last[name, at // 3600] == at:
            values[name][label].append((at, value))
    newest = max((at for _name, _label, at, _value in rows), default=0.0)
    if newest < (now - DAY).timestamp():
        return {}, None
    return values, dt.datetime.fromtimestamp(newest, dt.UTC)


def _tile(figure: Figure, series: Mapping[str, Points], taken_at: dt.datetime | None) -> Tile:
    """Only values taken last count as the latest: a series that ended has none, and neither has a figure that was not
    taken lately. Their charts stay.
    """
    drawn = {label: rates(points, figure.per_secs) if figure.per_secs else points for label, points in series.items()}
    points = combine(drawn, _HOW[figure.how])
    newest = points[-1][0] if points else 0.0
    is_new = taken_at is not None and newest > (taken_at - STALE).timestamp()
    latest = {
        figure.label_text(label): values[-1][1]
        for label, values in drawn.items()
        if is_new and values and values[-1][0] == newest
    }
    course = Course(points, latest)
    trouble = figure.trouble(course) if figure.trouble and latest else ""
    parts = sorted(((label, value) for label, value in latest.items() if value), key=lambda part: -part[1])
    return Tile(figure, course.value if latest else None, parts, points, trouble, address(figure.link))


def address(link: str) -> str:
    """The address of a view and its query, as figures name it; empty if this site has no such view."""
    name, _, query = link.partition("?")
    if not name:
        return ""
    try:
        return reverse(name) + (f"?{query}" if query else "")
    except NoReverseMatch:
        return ""


def history_address(name: str) -> str:
    """The address of a figure's long chart."""
    return reverse("admin:operating_figure_history", args=[name])


def _stale(now: dt.datetime, taken_at: dt.datetime | None) -> list[Attention]:
    if taken_at is None:
        return [
            Attention(
                _("Figures"), _("No figures were taken in the last day. They need a worker and beat: are both running?")
            )
        ]
    age = now - taken_at
    if age <= STALE:
        return []
    text = _("The figures are %(time)s old. A worker takes them every ten minutes.")
    return [Attention(_("Figures"), text % {"time": span(age.total_seconds())})]


def _live(now: dt.datetime, attention: list[Attention]) -> tuple[list[TaskLine], list[heartbeats.Process]]:
    """Read processes and tasks from Valkey. They are looked up for each page: no figures are taken without workers."""
    try:
        processes = heartbeats.processes()
        runs = metrics.task_runs()
    except RedisError:
        attention.append(Attention("Valkey", _("Valkey cannot be reached, so no task runs. Is it up?")))
        return [], []
    if not any(process.kind == "worker" for process in processes):
        sentence = _("No worker is running, so nothing is done in the background. Start one.")
        attention.append(Attention(_("Processes and services"), sentence))
    lines = [_task_line(run, now) for run in runs]
    attention += [
        Attention(_("Periodic tasks"), line.trouble, "?panel=services#tasks", _("Tasks"))
        for line in lines
        if line.trouble
    ]
    lines.sort(key=lambda line: (not line.trouble, line.title.casefold()))
    return lines, processes


def _beat_holder(attention: list[Attention]) -> str:
    """The beat process that sends the periodic tasks, according to the database."""
    if name := beat.holder():
        return name
    sentence = _("Beat is not running, so no periodic task is started. Start it.")
    attention.append(Attention(_("Processes and services"), sentence))
    return ""


def _task_line(run: metrics.TaskRuns, now: dt.datetime) -> TaskLine:
    failed_last = (run.last_failure_at or 0) > (run.last_success_at or 0)
    waiting_secs = now.timestamp() - (run.last_success_at or run.known_since)
    has_run = run.last_success_at is not None
    title = task_title(run.task)
    trouble = task_trouble(run.schedule_secs, waiting_secs, has_run, failed_last, run.fault, title)
    return TaskLine(run, title, span(run.schedule_secs), trouble)


# --- long charts ----------------------------------------------------------------------------------------


class LongCourse(NamedTuple):
    """A figure's series over a longer time: the larger ones by name, the rest together as "other"."""

    figure: Figure
    since: dt.datetime
    until: dt.datetime
    series: dict[str, Points]
    markers: list[Marker]


def bucket_secs(since: dt.datetime, until: dt.datetime) -> int:
    """The length of a chart's buckets: there are at most MAX_POINTS, each at least ten minutes long."""
    return max(600, -(-int((until - since).total_seconds()) // MAX_POINTS))


def long_course(figure: Figure, since: dt.datetime, until: dt.datetime) -> LongCourse:
    """The history of a figure; one statement, unless the figure has a history of its own."""
    course = figure.history(since, until) if figure.history else _course(figure, since, until)
    marks = list(figure.markers(since, until)) if figure.markers else []
    series = {figure.label_text(label): points for label, points in _largest(course, figure).items()}
    return LongCourse(figure, since, until, series, marks)


def _course(figure: Figure, since: dt.datetime, until: dt.datetime) -> dict[str, Points]:
    series: dict[str, list[tuple[float, float]]] = {}
    values: dict[str, Any] = {
        "name": figure.name,
        "since": since,
        "until": until,
        "bucket_secs": bucket_secs(since, until),
    }
    with connection.cursor() as cursor:
        cursor.execute(sql.COURSE, values)
        for label, at, value in cursor.fetchall():
            series.setdefault(label, []).append((at, value))
    if not figure.per_secs:
        return dict(series)
    return {label: rates(points, figure.per_secs) for label, points in series.items()}


def _largest(series: dict[str, Points], figure: Figure) -> dict[str, Points]:
    """At most MAX_SERIES lines. The rest becomes one more if the series are added up, else it is left out."""
    by_size = sorted((label for label in series if series[label]), key=lambda label: -_mean(series[label]))
    largest = {label: series[label] for label in by_size[:MAX_SERIES]}
    rest = {label: series[label] for label in by_size[MAX_SERIES:]}
    if rest and figure.how is Combine.SUM:
        largest["other"] = combine(rest, sum)
    return largest


def _mean(points: Points) -> float:
    return sum(value for _, value in points) / len(points)
