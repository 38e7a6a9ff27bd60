"""The minimal SQL for a validator: select, two updates and commit, of the same number of rows.

It uses plain tables beside the site's own, with no triggers, and no indexes but the primary keys, results by workunit,
and the waiting workunits.
"""

from __future__ import annotations

import time
from typing import Final

from django.db import transaction

from credit.validator.binary import Statement, decode
from tools.benchmarks.harness.database import execute

WORKUNITS_A_PASS: Final = 1000
_TABLES: Final = """
DROP TABLE IF EXISTS floor_workunit, floor_result;
CREATE TABLE floor_workunit (id bigint PRIMARY KEY, app bigint, waits boolean, credit float8);
CREATE TABLE floor_result (id bigint PRIMARY KEY, workunit bigint, granted float8);
INSERT INTO floor_workunit SELECT n, 1, true, NULL FROM generate_series(1, %(workunits)s) n;
INSERT INTO floor_result SELECT n, (n - 1) / %(replicas)s + 1, NULL
  FROM generate_series(1, %(workunits)s * %(replicas)s) n;
CREATE INDEX ON floor_workunit (app, id) WHERE waits;
CREATE INDEX ON floor_result (workunit);
ANALYZE floor_workunit, floor_result
"""
_SELECT: Final = Statement(
    """WITH batch AS (SELECT id FROM floor_workunit WHERE app = 1 AND waits ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED)
SELECT array_agg(id) FROM batch""",
    "int8",
)
_RESULTS: Final = Statement(
    "SELECT array_agg(id), array_agg(workunit) FROM floor_result WHERE workunit = ANY ($1)", "int8[]"
)
_GRANT: Final = Statement(
    "UPDATE floor_result r SET granted = n.granted FROM unnest($1, $2) n(id, granted) WHERE r.id = n.id",
    "int8[] float8[]",
)
_DECIDE: Final = Statement(
    "UPDATE floor_workunit w SET waits = false, credit = n.credit FROM unnest($1, $2) n(id, credit) WHERE w.id = n.id",
    "int8[] float8[]",
)


def create(workunits: int, replicas: int) -> None:
    execute(*_TABLES.split(";"), workunits=workunits, replicas=replicas)


def rate(passes: int) -> float:
    """Measure results granted per second with this many passes."""
    began = time.perf_counter()
    return sum(_pass() for _ in range(passes)) / (time.perf_counter() - began)


def _pass() -> int:
    with transaction.atomic():
        execute("SET LOCAL jit = off")
        workunits = decode(_SELECT.run(WORKUNITS_A_PASS)[0], "int8")
        if not len(workunits):
            return 0
        ids = decode(_RESULTS.run(workunits)[0], "int8")
        _GRANT.run(ids, ids * 0.5)
        _DECIDE.run(workunits, workunits * 0.5)
        return len(ids)
