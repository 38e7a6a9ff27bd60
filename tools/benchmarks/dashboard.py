"""How long operators wait for the dashboard, with ten million results and a year of snapshots and figures.

Rows are copied inside the database from a few made as usual: only their number and shape matter here.
"""

from __future__ import annotations

import datetime as dt
import os
import statistics
import time
from typing import Any, Final

from django.db.models import Model
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from credit.engine.states import Outcome, ServerState, ValidateState
from credit.models import App, AppSnapshot, AppVersion, AppVersionSnapshot, Platform, Result, Workunit
from portal.dashboard import record
from portal.models import Host, OperatingFigure, User
from tools.benchmarks.harness.database import execute

RESULTS: Final = int(os.environ.get("DASHBOARD_RESULTS", 10_000_000))
IN_PROGRESS: Final = 20
"""One in this many results is at a computer; the others were granted credit, over a year."""
VERSIONS: Final = 20
SNAPSHOTS: Final = 365 * 24 * 6
FIGURES_A_SERIES: Final = 1400
"""Snapshots of a year, thinned out: ten minutes apart, then hours, then days."""
ROUNDS: Final = 9
_YEAR: Final = "interval '365 days'"


def measure() -> dict[str, Any]:
    """Measure milliseconds, median and maximum of nine; and the seconds of taking the figures, as every ten minutes."""
    now = timezone.now()
    versions = _make_versions()
    _make_results(versions[0], now)
    _make_snapshots(versions, now)
    client = Client(headers={"host": "127.0.0.1"})
    client.force_login(User.objects.create_superuser("operator-of-the-dashboard@example.org"))
    began = time.perf_counter()
    record.take_all(now)
    take_secs = round(time.perf_counter() - began, 2)
    _make_figures(now)
    execute("VACUUM ANALYZE")
    pages = {"dashboard": "admin:index", "renewed_part": "admin:operating_figure_panels", "status": "status"}
    return {
        "results": Result.objects.count(),
        "take_secs": take_secs,
        **{name: _times(client, reverse(page)) for name, page in pages.items()},
    }


def _times(client: Client, path: str) -> dict[str, float]:
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        answer = client.get(path)
        times.append((time.perf_counter() - began) * 1000)
        assert answer.status_code == 200, (path, answer.status_code)
    return {"p50_ms": round(statistics.median(times), 1), "most_ms": round(max(times), 1)}


def _make_versions() -> list[AppVersion]:
    app = App.objects.create(name="bench-dashboard", user_friendly_name="Benchmark of the dashboard")
    platform, _ = Platform.objects.get_or_create(name="x86_64-pc-linux-gnu")
    return [
        AppVersion.objects.create(app=app, platform=platform, version_num=100 + number, pfc_n=1000, pfc_avg=2.0)
        for number in range(VERSIONS)
    ]


def _make_results(version: AppVersion, now: dt.datetime) -> None:
    """Make two results of each workunit. Granted ones are spread over the versions and the year."""
    host = Host.objects.create(owner=User.objects.create(email="volunteer-of-the-dashboard@example.org"))
    workunit = Workunit.objects.create(app=version.app, name="w0", fpops_est=1e13, fpops_bound=1e15)
    common: dict[str, Any] = {
        "workunit": workunit,
        "app": version.app,
        "app_version": version,
        "host": host,
        "user": host.owner,
    }
    common["processor_type"] = version.processor_type
    received = {"sent_at": now, "received_at": now, "deadline_at": now, "server_state": ServerState.OVER}
    granted = {"outcome": Outcome.SUCCESS, "validate_state": ValidateState.VALID, "granted_credit": 10.0}
    done = Result.objects.create(name="r0", **common, **received, **granted, granted_at=now)
    sent = {"sent_at": now, "deadline_at": now + dt.timedelta(days=7), "server_state": ServerState.IN_PROGRESS}
    running = Result.objects.create(name="r1", **common, **sent)
    nworkunits = RESULTS // 2
    _copy(workunit, nworkunits, {"name": "'w' || n", "created_at": f"now() - {_YEAR} * (n::float8 / {nworkunits})"})
    first = f"{workunit.pk} + 1 + n"
    nrunning = RESULTS // IN_PROGRESS
    ndone = RESULTS - nrunning
    at = f"now() - {_YEAR} * (n::float8 / {ndone})"
    times = dict.fromkeys(("received_at", "granted_at", "sent_at", "created_at"), at)
    spread = {"app_version_id": f"{version.pk} + n %% {VERSIONS}", "workunit_id": f"{first} %% {nworkunits}"}
    _copy(done, ndone, {"name": "'d' || n", **spread, **times, "granted_credit": "10 + n %% 7"})
    _copy(running, nrunning, {"name": "'i' || n", **spread})


def _make_snapshots(versions: list[AppVersion], now: dt.datetime) -> None:
    at = {"taken_at": f"now() - {_YEAR} * (n::float8 / {SNAPSHOTS})"}
    _copy(AppSnapshot.objects.create(app=versions[0].app, taken_at=now), SNAPSHOTS, at)
    for version in versions:
        _copy(
            AppVersionSnapshot.objects.create(app_version=version, taken_at=now, pfc_n=1000, expavg_credit=0),
            SNAPSHOTS,
            at,
        )


def _make_figures(now: dt.datetime) -> None:
    """Make a year of each existing series."""
    latest = OperatingFigure.objects.filter(taken_at=OperatingFigure.objects.latest("taken_at").taken_at)
    for figure in latest:
        _copy(figure, FIGURES_A_SERIES, {"taken_at": f"now() - {_YEAR} * (n::float8 / {FIGURES_A_SERIES})"})


def _copy(row: Model, count: int, changes: dict[str, str]) -> None:
    """Insert this many rows like this one; ``changes``: SQL of columns, by ``n`` from 1."""
    table = row._meta.db_table
    key = "id"
    columns = [str(field.column) for field in row._meta.concrete_fields if field.column != key]
    values = ", ".join(changes.get(column, f"t.{column}") for column in columns)
    execute(
        f"INSERT INTO {table} ({', '.join(columns)}) SELECT {values} FROM {table} t, generate_series(1, %(count)s) n"
        f" WHERE t.{key} = %(key)s",
        count=count,
        key=row.pk,
    )
