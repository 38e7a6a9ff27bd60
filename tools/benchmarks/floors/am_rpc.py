"""The minimal SQL for an account-manager RPC (docs/explanation/performance.md): one read, one write, a commit.

Plain tables beside the site's own, without indexes or triggers other than the primary keys and the user's key.
"""

from __future__ import annotations

import datetime as dt
import itertools
import json
from collections.abc import Callable
from typing import Final

from tools.benchmarks.am_fleet import HOSTS, PROJECTS
from tools.benchmarks.harness import load
from tools.benchmarks.harness.database import execute, own_connection
from tools.benchmarks.harness.rounds import Measured

_TABLES: Final = """
CREATE TABLE floor_user (id bigint PRIMARY KEY, key text UNIQUE);
CREATE TABLE floor_host (id bigint PRIMARY KEY, owner bigint, last_at timestamptz, said jsonb);
CREATE TABLE floor_total (host bigint, project bigint, a bigint, b bigint, c bigint, d bigint, e bigint, f bigint,
    PRIMARY KEY (host, project));
CREATE TABLE floor_day (user_id bigint, day date, project bigint, host bigint, a bigint, b bigint, c bigint, d bigint,
    e bigint, f bigint, PRIMARY KEY (user_id, day, project, host));
INSERT INTO floor_user SELECT n, md5(n::text) FROM generate_series(1, %(hosts)s) n;
INSERT INTO floor_host SELECT n, n, now(), %(said)s FROM generate_series(1, %(hosts)s) n;
"""
_READ: Final = """
SELECT u.id, h.id, h.last_at,
       (SELECT array_agg(t.*) FROM floor_total t WHERE t.host = h.id)::text
  FROM floor_user u JOIN floor_host h ON h.id = %s AND h.owner = u.id
 WHERE u.key = md5(%s::text) FOR UPDATE OF h
"""
_WRITE: Final = """
WITH n AS (SELECT * FROM unnest(%(p)s::bigint[], %(a)s::bigint[], %(b)s::bigint[], %(c)s::bigint[], %(d)s::bigint[],
                                %(e)s::bigint[], %(f)s::bigint[]) AS n(p, a, b, c, d, e, f)),
totals AS (INSERT INTO floor_total AS t SELECT %(host)s, p, a, b, c, d, e, f FROM n
    ON CONFLICT (host, project) DO UPDATE SET a = excluded.a, b = excluded.b, c = excluded.c, d = excluded.d,
        e = excluded.e, f = excluded.f),
days AS (INSERT INTO floor_day AS t SELECT %(host)s, %(day)s, p, %(host)s, a, b, c, d, e, f FROM n
    ON CONFLICT (user_id, day, project, host) DO UPDATE SET a = t.a + excluded.a, b = t.b + excluded.b,
        c = t.c + excluded.c, d = t.d + excluded.d, e = t.e + excluded.e, f = t.f + excluded.f)
UPDATE floor_host SET last_at = now(), said = %(said)s WHERE id = %(host)s
"""
SAID: Final = json.dumps({f"statistic_{number}": 0.971234 + number for number in range(50)})


def create() -> None:
    execute(_TABLES, hosts=HOSTS, said=SAID)


def measure(concurrency: int, secs: float) -> Measured:
    return load.run(_prepare, concurrency, secs)


def _prepare(number: int) -> Callable[[], None]:
    """Return a connection for this thread; it uses the hosts in turn, each thread its own, so that none waits."""
    connected = own_connection()
    hosts = itertools.cycle(range(1 + number, HOSTS + 1, 16))
    day = dt.datetime.now(dt.UTC).date()
    projects = list(range(PROJECTS))

    def step() -> None:
        host = next(hosts)
        values = [host] * PROJECTS
        row = {letter: values for letter in "abcdef"} | {"p": projects, "host": host, "day": day, "said": SAID}
        with connected.transaction(), connected.cursor() as cursor:
            cursor.execute(_READ, [host, host])
            cursor.fetchone()
            cursor.execute(_WRITE, row)

    return step
