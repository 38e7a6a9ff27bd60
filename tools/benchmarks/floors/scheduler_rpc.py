"""The minimal SQL for a scheduler RPC with two jobs (docs/explanation/performance.md).

One transaction: find the account by its key and lock the computer; pick two jobs by a partial index, skipping those
that others have; hand them out; note the contact. Plain tables beside the site's own, no other indexes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Final

from tools.benchmarks import scheduler_queue as queue
from tools.benchmarks.harness import load
from tools.benchmarks.harness.database import execute, own_connection
from tools.benchmarks.harness.rounds import Measured
from tools.benchmarks.scheduler_queue import HOSTS, JOBS_PER_RPC

_TABLES: Final = """
DROP TABLE IF EXISTS floor_account, floor_computer, floor_workunit, floor_job;
CREATE TABLE floor_account (id bigint PRIMARY KEY, key text UNIQUE);
CREATE TABLE floor_computer (id bigint PRIMARY KEY, owner bigint, contacts bigint DEFAULT 0);
CREATE TABLE floor_workunit (id bigint PRIMARY KEY, said text);
CREATE TABLE floor_job (id bigint PRIMARY KEY, workunit bigint, state int, computer bigint);
INSERT INTO floor_account SELECT n, md5(n::text) FROM generate_series(1, %(hosts)s) n;
INSERT INTO floor_computer SELECT n, n FROM generate_series(1, %(hosts)s) n;
CREATE INDEX floor_unsent ON floor_job (id) WHERE state = 2;
"""
_ADD: Final = """
WITH last AS (SELECT coalesce(max(id), 0) AS id FROM floor_job),
new AS MATERIALIZED (SELECT last.id + n AS id FROM last, generate_series(1, %(njobs)s) n),
added AS (INSERT INTO floor_workunit SELECT id / 2, repeat('x', 200) FROM new WHERE id %% 2 = 0)
INSERT INTO floor_job SELECT id, (id + 1) / 2, 2, NULL FROM new
"""
_LOCK: Final = """
SELECT c.id FROM floor_account a JOIN floor_computer c ON c.owner = a.id
 WHERE a.key = md5(%s::text) AND c.id = %s FOR NO KEY UPDATE OF c
"""
_PICK: Final = """
SELECT j.id, w.said FROM floor_job j JOIN floor_workunit w ON w.id = j.workunit
 WHERE j.state = 2 ORDER BY j.id LIMIT %s FOR NO KEY UPDATE OF j SKIP LOCKED
"""
_SEND: Final = """
WITH sent AS (UPDATE floor_job SET state = 4, computer = %(host)s WHERE id = ANY (%(ids)s))
UPDATE floor_computer SET contacts = contacts + 1 WHERE id = %(host)s
"""


def create(njobs: int) -> None:
    execute(_TABLES, hosts=HOSTS)
    _add(njobs)


def measure(concurrency: int, secs: float, njobs: int) -> Measured:
    """Measure with a queue held at this length."""
    execute("VACUUM ANALYZE floor_job")
    nsent = [0] * concurrency
    with queue.held(_add, lambda: sum(nsent), njobs):
        return load.run(partial(_prepare, nsent), concurrency, secs)


def _add(njobs: int) -> None:
    execute(_ADD, njobs=njobs)


def _prepare(nsent: list[int], number: int) -> Callable[[], None]:
    """Return a connection for this thread; it uses the computers in turn, each thread its own, so that none waits."""
    connected = own_connection()
    hosts = itertools.cycle(range(1 + number, HOSTS + 1, len(nsent)))

    def step() -> None:
        host = next(hosts)
        with connected.transaction(), connected.cursor() as cursor:
            cursor.execute(_LOCK, [host, host])
            cursor.fetchone()
            cursor.execute(_PICK, [JOBS_PER_RPC])
            ids = [row[0] for row in cursor.fetchall()]
            if len(ids) != JOBS_PER_RPC:
                raise RuntimeError("the floor ran out of jobs")
            cursor.execute(_SEND, {"host": host, "ids": ids})
        nsent[number] += JOBS_PER_RPC

    return step
