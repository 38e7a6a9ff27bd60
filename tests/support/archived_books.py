"""Histories of past years, and all that is read of them, for tests of the archive."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.db import connection
from django.test import override_settings

from accounting.certificates.facts import SHOWN, CertificateRequest, NoWork, draft, read_scopes
from accounting.computers.merge import _days_of
from accounting.engine.states import DayFlag
from accounting.exchange.day_rows import DayRange, count_rows, read_names, read_page, read_pages
from accounting.exchange.downloads import as_csv, as_json
from accounting.history.compared import Compare, Curve, read_beside
from accounting.history.day import read_day
from accounting.history.periods import Period, read_period
from accounting.history.reads import By, Show, read_history
from accounting.history.records import read_records
from accounting.history.sums import Only, read_first_day
from accounting.history.year import read_year
from accounting.ledger import check, rollup
from accounting.ledger.archive import moves
from accounting.models import Project
from accounting.reconciliation.reads import read_reconciled, read_standings
from portal.models import Host, User
from tests.support.accounting_factories import credit, make_host, make_project

TODAY: Final = dt.date(2026, 11, 23)
NOW: Final = dt.datetime(2026, 11, 23, 12, tzinfo=dt.UTC)
END: Final = dt.date(2024, 4, 1)
"""Tests archive the months before it."""
CREDIT: Final = 1_000_000


def archive_in(folder: Any) -> Any:
    """Settings with the archive in a folder."""
    backend = "django.core.files.storage.FileSystemStorage"
    archive = {"BACKEND": backend, "OPTIONS": {"location": str(folder)}}
    return override_settings(STORAGES={**settings.STORAGES, "archive": archive})


def make_history(user: User) -> tuple[list[Host], list[Project]]:
    """Two computers at two projects, one with several GPUs, from January to May 2024, and something in 2026."""
    nvidia, ati = {"type": "NVIDIA", "count": 1}, {"type": "ATI", "count": 1}
    hosts = [
        make_host(user, "studio", "2024-02-20", "2026-11-23", coprocs=[nvidia]),
        make_host(user, "attic", "2024-01-01", "2024-02-19", coprocs=[nvidia, ati]),
    ]
    projects = [make_project("Alpha"), make_project("Beta")]
    days = ("2024-01-20", "2024-01-21", "2024-01-31", "2024-02-01", "2024-02-03", "2024-03-31", "2024-04-01")
    for number, host in enumerate(hosts, 1):
        for day in (*days, "2024-05-02", "2026-11-20"):
            credit(host, projects[0], day, (40 * number * CREDIT, 1, 7 * CREDIT, 0, 1, 0), flags=DayFlag.CAPPED)
            credit(host, projects[1], day, (0, 50 * number * CREDIT + 1, 0, 9 * CREDIT, 0, 1))
    return hosts, projects


def roll_up() -> None:
    """All sums, so that months can be archived; what a test's transaction has put off is checked now."""
    assert rollup.roll_up(NOW)
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")


def everything(user: User) -> dict[str, Any]:
    """What each reader of the daily history says of a volunteer."""
    hosts, projects = list(Host.objects.filter(owner=user, merged_into=None)), list(Project.objects.all())
    found: dict[str, Any] = {"first": read_first_day(user, TODAY), "records": read_records(user, TODAY)}
    parts = [Only(), *(Only(host_id=host.pk) for host in hosts), *(Only(project_id=each.pk) for each in projects)]
    for first, last, step in (
        ("2024-01-15", "2024-04-15", "day"),
        ("2024-01-31", "2026-11-23", "week"),
        ("2024-01-21", "2026-11-23", "month"),
        ("2024-01-01", "2024-03-31", "month"),
    ):
        period = read_period({"from": first, "to": last, "step": step}, TODAY)
        for by in By:
            for only in parts if step == "day" else parts[:1]:
                shown = read_history(user, period, Show.CREDIT, by, TODAY, only)
                found[f"history {first} {step} {by} {only}"] = shown
        beside = read_beside(user, shown, Compare.YEAR, Curve.EACH, Only())
        found[f"beside {first} {step}"] = beside
        found[f"settled {first} {step}"] = _settled(user, period)
    for year in (2024, 2025):
        found[f"year {year}"] = read_year(user, year, TODAY)
    for day in ("2024-01-20", "2024-03-31", "2024-04-01"):
        page = read_day(user, dt.date.fromisoformat(day))
        found[f"day {day}"] = sorted((p.host.pk if p.host else 0, p.credit, p.flags) for p in page.parts), page.totals
    found["standings"] = sorted((each.host_id, each.project_id, each.settled) for each in read_standings(user))
    found["merge preview"] = [_days_of(host) for host in hosts]
    return found | _rows(user, hosts) | _certificates(user)


def _settled(user: User, period: Period) -> Any:
    starts = [(start, str(start)) for start in period.starts()]
    shown = read_reconciled(user, starts, (period.first, period.last), TODAY, by_months=period.step == "month")
    return shown.settled, shown.granted, shown.provisional, shown.lines


def _rows(user: User, hosts: list[Host]) -> dict[str, Any]:
    wide = DayRange(dt.date(2020, 1, 1), TODAY)
    narrow = DayRange(dt.date(2024, 1, 21), dt.date(2024, 3, 30), host_id=hosts[0].pk)
    found: dict[str, Any] = {}
    for wanted in (wide, narrow):
        names = read_names(user, wanted)
        pages = list(read_pages(user, wanted, 3))
        found[f"csv {wanted}"] = b"".join(as_csv(pages, names))
        found[f"json {wanted}"] = json.loads(b"".join(as_json(pages, names, wanted)))
        found[f"number {wanted}"] = count_rows(user, wanted), count_rows(user, wanted, 4)
        found[f"page {wanted}"] = read_page(user, wanted, (dt.date(2024, 1, 31), 0, 0), 5)
    assert found[f"number {wide}"][0] == found[f"csv {wide}"].count(b"\n") - 1
    return found


def _certificates(user: User) -> dict[str, Any]:
    scopes = read_scopes(user)
    found: dict[str, Any] = {}
    for about in ("all", *scopes.projects):
        wanted = CertificateRequest(dt.date(2024, 1, 21), dt.date(2024, 4, 10), about, SHOWN)
        try:
            found[f"certificate {about}"] = draft(user, wanted, scopes, TODAY)
        except NoWork:
            found[f"certificate {about}"] = None
    return found


def archive() -> list[moves.Moved]:
    return list(moves.archive_before(END, TODAY))


def restore() -> list[moves.Moved]:
    return list(moves.restore_before(END))


def sound() -> bool:
    """Whether check_ledger finds nothing."""
    assert list(check.differences()) == []
    return True


def files(folder: Path) -> list[str]:
    """The files in the archive's folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
