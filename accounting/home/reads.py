"""Read the home page: the last thirty days in figures, the computers, and what needs attention.

Amounts are whole numbers of 1e-6 credits or seconds; days are UTC days.
"""

from __future__ import annotations

import datetime as dt
import statistics
from dataclasses import dataclass, field

from django.db import connection

from accounting.computers.attention import Attention, Concern, read_attention
from accounting.computers.reads import is_in_contact
from accounting.engine.recent_work import Recent, ReportedDays, Work, last_24_hours, recent_ec
from accounting.home import sql
from accounting.models import Project
from accounting.reconciliation.reads import Reconciled, last_days, read_reconciled
from portal.models import Host, User
from portal.ops.mail_choices import silent_after
from portal.people.access import own_hosts

DAYS_SHOWN = 30
WEEK_DAYS = 7
MAX_HOSTS_SHOWN = 10
MAX_ATTENTION_LINES = 5
MAX_SILENT_LINES = 3


@dataclass(frozen=True, slots=True)
class ProjectPart:
    """A project's share of the week's credit; ``fraction`` is of the week, ``of_largest`` of the largest project."""

    name: str
    colour: int
    ec: int
    fraction: float
    of_largest: float


@dataclass(frozen=True, slots=True)
class HomeHost:
    """A computer with its credit of the last 24 hours and of the last seven days."""

    host: Host
    recent_ec: int
    week_ec: int
    is_active: bool
    needs_attention: bool


@dataclass(slots=True)
class Overview:
    """All figures of the home page."""

    recent: Recent
    week: Work
    month: Work
    total_ec: int
    settled: Reconciled
    usual_day_ec: int | None
    days: list[tuple[dt.date, int]]
    projects: list[ProjectPart]
    hosts: list[HomeHost]
    hosts_active: int
    hosts_total: int
    # If there are many silent computers, they share one line.
    silent: list[Attention] = field(default_factory=list)
    attention: list[Attention] = field(default_factory=list)
    attention_left_out: int = 0


@dataclass(slots=True)
class _Sums:
    by_day: dict[dt.date, Work] = field(default_factory=dict)
    week_by_project: dict[int, int] = field(default_factory=dict)
    week_by_host: dict[int, int] = field(default_factory=dict)
    by_host: dict[tuple[int, dt.date], Work] = field(default_factory=dict)


def read_overview(user: User, now: dt.datetime) -> Overview:
    """Read the figures of ``user`` at ``now``; fifteen statements, however many computers and projects there are."""
    today = now.astimezone(dt.UTC).date()
    yesterday = today - dt.timedelta(days=1)
    starts, range_ = last_days(today, DAYS_SHOWN)
    settled = read_reconciled(user, starts, range_, today)
    sums = _read_sums(user, today)
    hosts = list(own_hosts(user).filter(retired_at=None).order_by("-last_contact_at", "pk"))
    attention = read_attention(user, hosts, now, silent_after(user))
    troubled = {line.host_id for line in attention}
    # Of tasks that fail at several projects only the first line: the computer's page has them all.
    first_lines: dict[tuple[int, Concern], Attention] = {}
    for one in attention:
        first_lines.setdefault((one.host_id, one.concern), one)
    attention = list(first_lines.values())
    lines = [
        HomeHost(
            host=host,
            recent_ec=recent_ec(
                sums.by_host.get((host.pk, yesterday), Work()).ec,
                sums.by_host.get((host.pk, today), Work()).ec,
                host.last_contact_at,
                now,
            ),
            week_ec=sums.week_by_host.get(host.pk, 0),
            is_active=is_in_contact(host, now),
            needs_attention=host.pk in troubled,
        )
        for host in hosts
    ]
    if len(lines) > MAX_HOSTS_SHOWN:
        # The most relevant ones, as not all are shown; latest contact first among equals.
        lines.sort(key=lambda line: not line.needs_attention)
    silent = [line for line in attention if line.concern is Concern.SILENT]
    if len(silent) > MAX_SILENT_LINES:
        attention = [line for line in attention if line.concern is not Concern.SILENT]
    else:
        silent = []
    days = [today - dt.timedelta(days=back) for back in range(DAYS_SHOWN - 1, -1, -1)]
    return Overview(
        recent=last_24_hours(_reported_days(sums, lines, now), now),
        week=_work_of(sums, days[-WEEK_DAYS:]),
        month=_work_of(sums, days),
        total_ec=settled.settled,
        settled=settled,
        usual_day_ec=_usual_day(sums, days[:-1]),
        days=[(day, sums.by_day[day].ec if day in sums.by_day else 0) for day in days],
        projects=_project_parts(sums),
        hosts=lines[:MAX_HOSTS_SHOWN],
        hosts_active=sum(line.is_active for line in lines),
        hosts_total=len(lines),
        silent=silent,
        attention=attention[:MAX_ATTENTION_LINES],
        attention_left_out=max(0, len(attention) - MAX_ATTENTION_LINES),
    )


def _read_sums(user: User, today: dt.date) -> _Sums:
    sums = _Sums()
    first = today - dt.timedelta(days=DAYS_SHOWN - 1)
    week_start = today - dt.timedelta(days=WEEK_DAYS - 1)
    with connection.cursor() as cursor:
        cursor.execute(sql.BREAKDOWNS, [user.pk, first, today])
        for grouping, day, project_id, host_id, *amounts in cursor:
            work = Work(*amounts)
            if grouping == sql.BY_DAY:
                sums.by_day[day] = work
            elif grouping == sql.BY_PROJECT and day >= week_start:
                _add(sums.week_by_project, project_id, work.ec)
            elif grouping == sql.BY_HOST and day >= week_start:
                _add(sums.week_by_host, host_id, work.ec)
                sums.by_host[host_id, day] = work
    return sums


def _reported_days(sums: _Sums, lines: list[HomeHost], now: dt.datetime) -> list[ReportedDays]:
    """Return the reports of each computer that worked yesterday or today; retired ones no longer report."""
    today = now.astimezone(dt.UTC).date()
    yesterday = today - dt.timedelta(days=1)
    in_use = {line.host.pk: line for line in lines}
    reports = []
    for pk in {host_id for host_id, day in sums.by_host if day >= yesterday}:
        line = in_use.get(pk)
        last_at = line.host.last_contact_at if line else None
        before, since = (sums.by_host.get((pk, day), Work()) for day in (yesterday, today))
        reports.append(ReportedDays(last_at or now, before, since, is_active=line is not None and line.is_active))
    return reports


def _add(sums: dict[int, int], key: int, amount: int) -> None:
    sums[key] = sums.get(key, 0) + amount


def _work_of(sums: _Sums, days: list[dt.date]) -> Work:
    work = Work()
    for day in days:
        if day in sums.by_day:
            work.add(sums.by_day[day])
    return work


def _usual_day(sums: _Sums, complete_days: list[dt.date]) -> int | None:
    """Return the median of the complete days since the first one with work; None before there are three."""
    worked = [day for day in complete_days if day in sums.by_day]
    if not worked:
        return None
    since = [sums.by_day[day].ec if day in sums.by_day else 0 for day in complete_days if day >= worked[0]]
    return round(statistics.median(since)) if len(since) >= 3 else None


def _project_parts(sums: _Sums) -> list[ProjectPart]:
    amounts = {pk: ec for pk, ec in sums.week_by_project.items() if ec}
    total, largest = sum(amounts.values()), max(amounts.values(), default=0)
    projects = Project.objects.filter(pk__in=amounts).only("pk", "name", "colour")
    parts = [
        ProjectPart(
            project.name,
            project.data_colour,
            amounts[project.pk],
            amounts[project.pk] / total,
            amounts[project.pk] / largest,
        )
        for project in projects
    ]
    return sorted(parts, key=lambda part: -part.ec)
