"""How long the history page spends in the database.

With 100,000 daily rows in the table, with ten million, and "All" of one person with 440,000.
"""

from __future__ import annotations

import datetime as dt
import random
import statistics
import time
from typing import Any, Final

from django.conf import settings
from django.db import connection
from django.test import Client
from django.urls import reverse

from accounting.ledger import partitions
from accounting.ledger.months import close_months
from accounting.models import Project
from portal.models import Host, User
from tools.benchmarks.harness.database import execute
from tools.benchmarks.harness.rounds import percentile

VOLUNTEERS: Final = 1000
COMPUTERS: Final = 4
PROJECTS: Final = 3
# The number of people with a month of history in the small table; the large one has years for everybody.
FIRST_VOLUNTEERS: Final = 280
MONTH_DAYS: Final = 31
LARGE: Final = 10_000_000
PAGES: Final = 200
# One person's rows: 40 computers at 3 projects for ten years
LONG_COMPUTERS: Final = 40
LONG_DAYS: Final = 3660
LONG_PAGES: Final = 20

# Straight into the table: only its size and shape matter here, and a million reports would take hours.
_FILL: Final = """
INSERT INTO accounting_day (user_id, day, project_id, host_id, cpu_ec, gpu_ec, cpu_time, gpu_time, njobs_success,
                            njobs_error, flags)
SELECT h.owner_id, %(day)s, p.id, h.id, 1000000 + h.id, 0, 3600000000, 0, 3, 0, 0
  FROM portal_host h, accounting_project p WHERE p.id = ANY (%(projects)s) AND h.owner_id = ANY (%(users)s)
"""


def measure() -> dict[str, Any]:
    """Measure median and 99th percentile, in milliseconds, of a page's statements together; 30 days and a year.

    The same people's pages are read from both tables, so they show the same rows. Each is read twice in a row: the
    extra cost of the first time comes from data that the database had to fetch from outside its own memory.
    """
    projects, users = _people()
    first, others = users[:FIRST_VOLUNTEERS], users[FIRST_VOLUNTEERS:]
    today = dt.datetime.now(dt.UTC).date()
    month = [today - dt.timedelta(days=number) for number in range(MONTH_DAYS)]
    rows = _fill(month, projects, first)
    small = {"rows": rows, **_page_times(first, {"range": "30"})}
    rows += _fill(month, projects, others)
    day = month[-1]
    while rows < LARGE:
        day -= dt.timedelta(days=1)
        rows += _fill([day], projects, users)
    execute("VACUUM ANALYZE accounting_day")
    large = {"rows": rows, **_page_times(first, {"range": "30"})}
    a_year = _page_times(first, {"range": "year"})
    return {**large, "small": small, "large": large, "a_year": a_year, "all_of_a_long_one": _long(projects, today)}


def _long(projects: list[int], today: dt.date) -> dict[str, float]:
    """Measure "All" of one person with 440,000 rows, whose months are closed."""
    user = User.objects.create(email="long-history@example.org")
    Host.objects.bulk_create(Host(owner=user, domain_name=f"long{number}") for number in range(LONG_COMPUTERS))
    rows = _fill([today - dt.timedelta(days=number) for number in range(LONG_DAYS)], projects, [user])
    close_months(dt.datetime.now(dt.UTC), since=today - dt.timedelta(days=LONG_DAYS))
    execute("VACUUM ANALYZE accounting_month")
    return {"rows": rows, **_page_times([user], {"range": "all"}, LONG_PAGES)}


def _people() -> tuple[list[int], list[User]]:
    projects = [
        Project.objects.get_or_create(name=f"History {number}", master_url=f"http://history{number}.example.org/")[0].pk
        for number in range(PROJECTS)
    ]
    users = User.objects.bulk_create(User(email=f"history{number}@example.org") for number in range(VOLUNTEERS))
    Host.objects.all().delete()
    Host.objects.bulk_create(
        Host(owner=user, domain_name=f"computer{number}") for user in users for number in range(COMPUTERS)
    )
    return projects, users


def _fill(days: list[dt.date], projects: list[int], users: list[User]) -> int:
    """Add rows of these people for these days; return how many."""
    rows = 0
    ids = [user.pk for user in users]
    # The foreign key's check, row by row, would take most of the time.
    execute("SET session_replication_role = replica")
    for day in days:
        partitions.ensure_partition(day)
        rows += execute(_FILL, day=day, projects=projects, users=ids)
    execute("SET session_replication_role = origin")
    if len(days) > 1:
        execute("ANALYZE accounting_day")
    return rows


def _page_times(users: list[User], query: dict[str, str], pages: int = PAGES) -> dict[str, float]:
    client, dice = Client(), random.Random(1)
    first: list[float] = []
    again: list[float] = []
    host = settings.ALLOWED_HOSTS[0]
    secs = 0.0

    def timed(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        nonlocal secs
        started = time.perf_counter()
        try:
            return execute(sql, params, many, context)
        finally:
            secs += time.perf_counter() - started

    for number in range(pages + 10):
        client.force_login(dice.choice(users), settings.AUTHENTICATION_BACKENDS[0])
        for times in (first, again):
            secs = 0.0
            with connection.execute_wrapper(timed):
                page = client.get(reverse("history"), query, HTTP_HOST=host, secure=settings.HTTPS)
            if page.status_code != 200:
                raise RuntimeError(f"the history page answered {page.status_code}")
            # The first people warm up the connection and the cache.
            if number >= 10:
                times.append(secs * 1000)
    return {**_percentiles(again), **{f"first_{name}": ms for name, ms in _percentiles(first).items()}}


def _percentiles(times_ms: list[float]) -> dict[str, float]:
    times_ms.sort()
    return {"p50_ms": round(statistics.median(times_ms), 2), "p99_ms": round(percentile(times_ms, 99), 2)}
