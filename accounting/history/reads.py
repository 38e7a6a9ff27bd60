"""Read a volunteer's history: their computers' work per day, week or month, by project, computer or processor.

accounting/history/sums.py adds the days up. Amounts are whole numbers of 1e-6 credits or seconds, and plain counts of
jobs.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from operator import attrgetter
from typing import Final

from django.utils.translation import gettext, ngettext

from accounting.engine.amounts import NO_WORK, Totals
from accounting.engine.states import DayFlag
from accounting.history.periods import Period, Step, next_start
from accounting.history.processor_types import UNKNOWN, GpuKinds, read_gpu_kinds
from accounting.history.sums import BY_HOST, BY_PROJECT, NO_FILTER, Cell, HistoryFilter, read_sums
from accounting.ledger.texts import flag_words
from accounting.models import Project
from portal.models import Host, User
from portal.templatetags.display import day, month
from portal.templatetags.drawings import DATA_COLOURS

# As many as there are colours for data.
MAX_SERIES: Final = DATA_COLOURS


class Show(StrEnum):
    """The quantity of the chart."""

    CREDIT = "credit"
    TIME = "time"
    JOBS = "jobs"


class By(StrEnum):
    """What the bars are stacked by."""

    PROJECT = "project"
    COMPUTER = "computer"
    PROCESSOR = "processor"


# The two halves of a quantity: CPU and GPU, or jobs that succeeded and failed.
_HALVES: Final[dict[Show, tuple[Callable[[Totals], int], Callable[[Totals], int]]]] = {
    Show.CREDIT: (attrgetter("cpu_ec"), attrgetter("gpu_ec")),
    Show.TIME: (attrgetter("cpu_time"), attrgetter("gpu_time")),
    Show.JOBS: (attrgetter("njobs_success"), attrgetter("njobs_error")),
}

# Days with one of these get a mark in the chart.
_MARKED: Final = DayFlag.CAPPED | DayFlag.RESET | DayFlag.RETURNED | DayFlag.SPEED_UNKNOWN | DayFlag.SUM_BROKEN


@dataclass(frozen=True, slots=True)
class Series:
    """One layer of the chart: its name, data colour ("0" to "7" or "other"), values per step, and their sum."""

    name: str
    colour: str
    values: list[int]
    total: int


@dataclass(frozen=True, slots=True)
class Group:
    """All work of one project or computer (``key``) in the range. ``total``: of the chosen quantity.

    ``colour``: that of its layer; "other" if it shares a layer.
    """

    key: int
    name: str
    colour: str
    amounts: Totals
    total: int

    @property
    def credit(self) -> int:
        """CPU and GPU credit together."""
        return quantity(self.amounts, Show.CREDIT)


@dataclass(slots=True)
class Line:
    """One step, clipped to the range: first and last day, the layers' parts, their total, all six amounts.

    ``is_partial``: not over yet.
    """

    start: dt.date
    end: dt.date
    title: str
    is_partial: bool
    parts: list[int]
    total: int = 0
    amounts: Totals = NO_WORK
    flags: int = 0

    @property
    def credit(self) -> int:
        """CPU and GPU credit together."""
        return quantity(self.amounts, Show.CREDIT)

    @property
    def notes(self) -> list[str]:
        """What the owner should know about these days, in words."""
        return flag_words(self.flags)


@dataclass(slots=True)
class History:
    """Everything that a history page shows. ``mean``: per day of the range so far; ``best``: a line.

    ``groups``: each project or computer, the largest first; empty for a breakdown by processor.
    """

    period: Period
    show: Show
    by: By
    series: list[Series]
    lines: list[Line]
    groups: list[Group]
    totals: Totals
    best: Line | None = None
    mean: float = 0.0

    @property
    def total(self) -> int:
        """The sum of the chosen quantity."""
        return quantity(self.totals, self.show)

    @property
    def credit(self) -> int:
        """CPU and GPU credit together."""
        return quantity(self.totals, Show.CREDIT)

    @property
    def marked(self) -> list[int]:
        """The indexes of the marked days in the chart. Weeks and months have no marks, as most would be marked."""
        if self.period.step is not Step.DAY:
            return []
        return [place for place, line in enumerate(self.lines) if line.flags & _MARKED]

    @property
    def is_empty(self) -> bool:
        """Whether there is no work of any kind, not even run time of unfinished jobs."""
        return not any(self.totals)


def quantity(amounts: Totals, show: Show) -> int:
    """Return the chosen quantity of six amounts: credit, run time or jobs, both halves together."""
    return sum(half(amounts) for half in _HALVES[show])


def read_history(
    user: User, period: Period, show: Show, by: By, today: dt.date, only: HistoryFilter = NO_FILTER
) -> History:
    """Read the history of ``user``; two statements (the days, and the names of their groups), or one or three.

    By months up to two more (`sums.read_sums`).
    """
    groups: list[Group] = []
    if by is By.PROCESSOR and show is not Show.JOBS:
        kinds = read_gpu_kinds(user)
        cells = read_sums(user, period, kinds.key, only=only)
        series, parts = _processors(cells, show, kinds)
    elif by is By.PROCESSOR:
        cells = read_cells(user, period, by, only=only)
        series, parts = _outcomes(cells)
    else:
        cells = read_cells(user, period, by, only=only)
        groups = named_groups(user, cells, show, by)
        series, parts = _stack(cells, show, groups)
    return _build_history(period, show, by, today, cells, series, parts, groups)


def read_cells(
    user: User, period: Period, by: By, limit: int | None = None, only: HistoryFilter = NO_FILTER
) -> list[Cell]:
    """Read at most ``limit`` sums per step and project or computer, in order of time (`sums.read_sums`)."""
    key = {By.PROJECT: BY_PROJECT, By.COMPUTER: BY_HOST}.get(by)
    return read_sums(user, period, key, limit, only)


def _names(user: User, by: By, keys: Iterable[int]) -> dict[int, tuple[str, int]]:
    """Return name and colour of each project or computer; a computer's colour is its position among its owner's."""
    if by is By.PROJECT:
        projects = Project.objects.filter(pk__in=keys).only("pk", "name", "colour")
        return {project.pk: (project.name, project.data_colour) for project in projects}
    hosts = Host.objects.filter(owner=user).only("pk", "given_name", "domain_name").order_by("pk")
    return {host.pk: (host.name, place % DATA_COLOURS) for place, host in enumerate(hosts)}


Parts = dict[dt.date, list[int]]


def _outcomes(cells: Sequence[Cell]) -> tuple[list[tuple[str, str]], Parts]:
    """Return the tasks that succeeded and failed; clients do not say on which processors they ran."""
    parts = {cell.start: [cell.amounts.njobs_success, cell.amounts.njobs_error] for cell in cells}
    return [(gettext("Succeeded"), "2"), (gettext("Failed"), "5")], parts


def _processors(cells: Sequence[Cell], show: Show, kinds: GpuKinds) -> tuple[list[tuple[str, str]], Parts]:
    """Return processors, and each kind of GPU with any work, largest first; "GPU" if there is none."""
    cpu, gpu = _HALVES[show]
    sums: dict[int, int] = {}
    for cell in cells:
        if amount := gpu(cell.amounts):
            sums[cell.key] = sums.get(cell.key, 0) + amount
    kinds_in_order = sorted(sums, key=lambda kind: (-sums[kind], kind)) or [UNKNOWN]
    places = {kind: place for place, kind in enumerate(kinds_in_order, 1)}
    parts: Parts = {}
    for cell in cells:
        values = parts.setdefault(cell.start, [0] * (len(kinds_in_order) + 1))
        values[0] += cpu(cell.amounts)
        if amount := gpu(cell.amounts):
            values[places[cell.key]] += amount
    names = [(kinds.names[kind][0], str(kinds.names[kind][1])) for kind in kinds_in_order]
    return [(gettext("CPU"), "0"), *names], parts


def named_groups(user: User, cells: Sequence[Cell], show: Show, by: By) -> list[Group]:
    """Return the sums of each project or computer, largest first; one statement, for their names."""
    return _groups(cells, show, _names(user, by, {cell.key for cell in cells}))


def _groups(cells: Sequence[Cell], show: Show, names: dict[int, tuple[str, int]]) -> list[Group]:
    """Return each project or computer with all of its amounts, largest in the chosen quantity first.

    The largest eight have colours of their own.
    """
    sums: dict[int, Totals] = {}
    for cell in cells:
        sums[cell.key] = sums.get(cell.key, NO_WORK).plus(cell.amounts)
    ranked = sorted(sums, key=lambda key: (-quantity(sums[key], show), key))
    groups: list[Group] = []
    taken: set[int] = set()
    for key in ranked:
        name, colour = names.get(key, (gettext("No. %(number)s (deleted)") % {"number": key}, key % DATA_COLOURS))
        total = quantity(sums[key], show)
        shade = "other"
        if total and len(taken) < MAX_SERIES:
            # Two may have the same colour. In one chart the smaller one takes a colour that is free.
            if colour in taken:
                colour = min(set(range(DATA_COLOURS)) - taken)
            taken.add(colour)
            shade = str(colour)
        groups.append(Group(key, name, shade, sums[key], total))
    return groups


def _stack(cells: Sequence[Cell], show: Show, groups: Sequence[Group]) -> tuple[list[tuple[str, str]], Parts]:
    """Stack the groups with a colour as layers, and one layer for all others with any work."""
    coloured = [group for group in groups if group.colour != "other"]
    layers = [(group.name, group.colour) for group in coloured]
    if others := sum(bool(group.total) for group in groups) - len(coloured):
        layers.append((ngettext("%(number)s other", "%(number)s others", others) % {"number": others}, "other"))
    places = {group.key: place for place, group in enumerate(coloured)}
    parts: Parts = {}
    for cell in cells:
        if amount := quantity(cell.amounts, show):
            values = parts.setdefault(cell.start, [0] * len(layers))
            values[places.get(cell.key, MAX_SERIES)] += amount
    return layers, parts


def _build_history(
    period: Period,
    show: Show,
    by: By,
    today: dt.date,
    cells: Sequence[Cell],
    layers: Sequence[tuple[str, str]],
    parts: Parts,
    groups: list[Group],
) -> History:
    lines: dict[dt.date, Line] = {}
    for start in period.starts():
        end = next_start(start, period.step) - dt.timedelta(days=1)
        lines[start] = Line(
            start=max(start, period.first),
            end=min(end, period.last),
            title=_title(max(start, period.first), min(end, period.last), period.step),
            is_partial=start <= today <= end,
            parts=parts.get(start, [0] * len(layers)),
        )
    for cell in cells:
        line = lines[cell.start]
        line.amounts = line.amounts.plus(cell.amounts)
        line.total += quantity(cell.amounts, show)
        line.flags |= cell.flags
    totals = NO_WORK
    for line in lines.values():
        totals = totals.plus(line.amounts)
    ordered = list(lines.values())
    columns = [[line.parts[place] for line in ordered] for place in range(len(layers))]
    best = max(ordered, key=lambda line: line.total, default=None)
    return History(
        period=period,
        show=show,
        by=by,
        series=[
            Series(name, colour, values, sum(values)) for (name, colour), values in zip(layers, columns, strict=True)
        ],
        lines=ordered,
        groups=groups,
        totals=totals,
        best=best if best is not None and best.total else None,
        mean=quantity(totals, show) / period.days,
    )


def _title(first: dt.date, last: dt.date, step: Step) -> str:
    """Return the days of a line in words: "21 Nov 2026", "16 Nov 2026 to 22 Nov 2026", "November 2026"."""
    if step is Step.WEEK and first < last:
        return gettext("%(first)s to %(last)s") % {"first": day(first), "last": day(last)}
    return month(first) if step is Step.MONTH else day(first)
