"""Results granted per second by one validator, compared with the SQL floor of the same run; and the engine alone."""

from __future__ import annotations

import datetime as dt
import time
from copy import deepcopy
from random import Random
from typing import Any, Final

from django.db import connection
from django.utils import timezone

from credit.engine.averages import Average
from credit.engine.decisions import decide_set
from credit.engine.facts import AppFacts, HostVersionFacts, ResultFacts, VersionFacts, WorkunitFacts
from credit.models import App
from credit.statistics.facts import app_facts
from credit.statistics.feeder import feed
from credit.validator.passes import run_pass
from extras.laboratory.trials.population import KINDS
from extras.laboratory.trials.simulation import SimulatedProject, make_computers, release_versions
from tools.benchmarks.floors import validator as floor
from tools.benchmarks.harness import cpu
from tools.benchmarks.harness.database import execute
from tools.benchmarks.harness.rounds import Measured, beside_floor
from tools.benchmarks.harness.statements import statements

WORKUNITS: Final = 20_000
HOSTS: Final = 600
ANONYMOUS: Final = 0.1
WARM_UP: Final = 2000
BATCH: Final = 5000
"""Workunits of a pass, as in VALIDATOR_BATCH; the floor's are of a thousand, and gain nothing from more."""
BACKLOGS: Final = 2
"""This many times ``WORKUNITS`` wait and are validated."""
ENGINE_WORKUNITS: Final = 20_000


def measure() -> dict[str, Any]:
    """Measure two results per workunit, and one; validator and floor alternate, so that other load affects both
    alike.
    """
    double = _measure(2)
    single = _measure(1)
    return {
        **{key: double[key] for key in ("rate", "floor", "ratio")},
        "engine_us": _engine_us(),
        "statements_per_1000_results": double["statements_per_1000_results"],
        "two_results": double,
        "one_result": single,
    }


def _measure(replicas: int) -> dict[str, Any]:
    now = timezone.now()
    rng = Random(replicas)
    app = App.objects.create(name=f"bench-{replicas}", user_friendly_name="Benchmark")
    computers = make_computers(rng, HOSTS, anonymous_part=ANONYMOUS)
    project = SimulatedProject(app, KINDS, release_versions(app), computers, rng, replicas)
    # So that there are records, averages and scales, as in a running project.
    project.report(WARM_UP, now - dt.timedelta(days=2), now - dt.timedelta(days=1))
    while run_pass(app.pk, now, BATCH).nworkunits:
        pass
    feed(now, app)
    ours: list[Measured] = []
    floors: list[Measured] = []
    for _ in range(BACKLOGS):
        project.report(WORKUNITS, now - dt.timedelta(days=1), now)
        floor.create(WORKUNITS + BATCH, replicas)
        # What was just loaded is written to disk before the measurement.
        execute("ANALYZE", "CHECKPOINT")
        before = _floor_rate()
        while (measured := _pass(app, now)) is not None:
            after = _floor_rate()
            ours.append(measured)
            floors.append(Measured((before + after) / 2))
            before = after
    return {
        **beside_floor(ours, floors),
        "rounds": len(ours),
        "statements_per_1000_results": _statements(project, now, replicas),
    }


def _floor_rate() -> float:
    return floor.rate(BATCH // floor.WORKUNITS_A_PASS)


def _pass(app: App, now: dt.datetime) -> Measured | None:
    """Return results a second, and for each the processor time (µs) of Python and of the server's process, and the
    bytes of the server's log; None if there are none left.
    """
    before = _used()
    report = run_pass(app.pk, now, BATCH)
    used = [after - earlier for after, earlier in zip(_used(), before, strict=True)]
    if not report.nworkunits:
        return None
    secs, python_us, server_us, wal_bytes = (amount / report.nresults for amount in used)
    figures = {"python_us": python_us, "server_us": server_us, "wal_bytes": wal_bytes}
    return Measured(1 / secs, {name: round(amount, 1) for name, amount in figures.items()})


def _used() -> tuple[float, ...]:
    """Return seconds by the clock; µs of processor time of this process and of its server's; bytes of the server's
    log.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid(), (pg_current_wal_insert_lsn() - '0/0')::float8")
        pid, wal_nbytes = cursor.fetchone()
    return time.perf_counter(), time.process_time() * 1e6, cpu.secs_of(pid) * 1e6, wal_nbytes


def _statements(project: SimulatedProject, now: dt.datetime, replicas: int) -> float:
    project.report(BATCH, now, now)
    return round(statements(lambda: run_pass(project.app.pk, now, BATCH)) / (BATCH * replicas / 1000), 2)


def _engine_us() -> float:
    """Return microseconds of the engine alone for each result, at two per workunit."""
    app = app_facts(App(pk=1, min_avg_pfc=2.0))
    version = VersionFacts(1, Average(1000, 2.0), 1.0)
    records = [HostVersionFacts(Average(20, 2.0)) for _ in range(HOSTS)]
    best = min(_engine_run(app, deepcopy(version), deepcopy(records)) for _ in range(3))
    return round(best / (2 * ENGINE_WORKUNITS) * 1e6, 2)


def _engine_run(app: AppFacts, version: VersionFacts, records: list[HostVersionFacts]) -> float:
    results = [ResultFacts(record, version, 5000.0, 4e9, 0.0, 9000.0) for record in records]
    workunit = WorkunitFacts(1e13, 1e15, 2, 2)
    began = time.perf_counter()
    for number in range(ENGINE_WORKUNITS):
        first = number % (HOSTS - 1)
        decide_set(app, workunit, results[first : first + 2], (), 10_000.0)
    return time.perf_counter() - began
