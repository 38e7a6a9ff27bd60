"""How long the credit engine alone takes per result: no database, all facts made beforehand."""

from __future__ import annotations

import random
import time
from typing import Final

from credit.engine.averages import Average
from credit.engine.decisions import decide_set
from credit.engine.facts import AppFacts, HostVersionFacts, ResultFacts, VersionFacts, WorkunitFacts
from credit.engine.rules import Rules

NHOSTS: Final = 600
NVERSIONS: Final = 6
ANONYMOUS_FRACTION: Final = 0.05
NOW: Final = 1_800_000_000.0

Job = tuple[WorkunitFacts, list[ResultFacts]]


def population(nworkunits: int, nresults: int, rules: Rules) -> tuple[AppFacts, list[Job]]:
    """An app with versions of different efficiency, and its workunits with valid results, always the same ones."""
    rng = random.Random(4)
    app = AppFacts(1, rules, min_avg_pfc=1.5)
    versions = [
        VersionFacts(n, Average(5000, 2.0 + n), 1.5 / (2.0 + n), "CPU" if n < 4 else "NVIDIA") for n in range(NVERSIONS)
    ]
    records: dict[tuple[int, int], HostVersionFacts] = {}
    jobs = []
    for _ in range(nworkunits):
        est = rng.uniform(1e13, 1e14)
        results = []
        for host in rng.sample(range(NHOSTS), nresults):
            anonymous = host < NHOSTS * ANONYMOUS_FRACTION
            version = None if anonymous else versions[(host + rng.randrange(2)) % NVERSIONS]
            record = records.setdefault((host, version.id if version else -2), HostVersionFacts())
            peak = rng.uniform(2e9, 8e9)
            elapsed = (version.pfc.avg or 1.0 if version else 3.0) * est * rng.uniform(0.8, 1.2) / peak
            results.append(ResultFacts(record, version, elapsed, peak, NOW - 2 * elapsed, NOW, anonymous))
        jobs.append((WorkunitFacts(est, 100 * est, min(nresults, 2), nresults), results))
    return app, jobs


def measure(nworkunits: int = 20_000, nresults: int = 2, rules: Rules | None = None) -> float:
    """Microseconds of processor time per result, for claims, statistics and grants."""
    app, jobs = population(nworkunits, nresults, rules or Rules.published())
    started = time.process_time()
    for workunit, results in jobs:
        decide_set(app, workunit, results, (), NOW)
    return (time.process_time() - started) * 1e6 / (nworkunits * nresults)
