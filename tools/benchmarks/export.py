"""The statistics export of a project of EXPORT_USERS volunteers with two computers each: rate and memory.

For comparison in the same run, the same rows by COPY … TO STDOUT, which are read and dropped.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from typing import Any, Final

import psycopg
from django.conf import settings

from credit.export import sql
from credit.models import StatisticsExport
from portal.databases.params import psycopg_params
from tools.benchmarks.harness.database import execute
from tools.benchmarks.harness.server import most_memory_kb

USERS: Final = int(os.environ.get("EXPORT_USERS", "1000000"))
HOSTS_EACH: Final = 2
ROUNDS: Final = 3

# Totals are of a size that a numeric of 15 digits holds to the millionth, whatever the ids are.
_FILL: Final = """
INSERT INTO portal_user (password, is_superuser, email, name, client_password, client_password_email,
                         next_client_password, next_client_password_email, cross_project_id, is_staff, is_active,
                         created_at)
SELECT '', false, 'volunteer' || n || '@example.org', 'Volunteer ' || n, '', '', '', '', md5(n::text), false, true,
       now() - n * interval '1 minute'
  FROM generate_series(1, %(users)s) n;
INSERT INTO credit_exportconsent (user_id, exports_statistics, shows_hosts, changed_at)
SELECT id, true, true, now() FROM portal_user;
INSERT INTO credit_usercredit (user_id, total_credit, expavg_credit, expavg_at)
SELECT id, (id %% 100000 + 1) * 1234.5678901, id * 0.12345678, now() - id %% 100 * interval '1 hour' FROM portal_user;
INSERT INTO portal_host (owner_id, token, host_cpid, domain_name, given_name, venue, created_at, last_contact_at,
                         client_version, platform_name, timezone_secs, ncpus, p_vendor, p_model, p_features, p_fpops,
                         p_iops, p_membw, m_nbytes, m_cache, m_swap, d_total, os_name, os_version, product_name,
                         virtualbox_version, coprocs, hardware_digest, hardware_faults)
SELECT id, md5(id || '.' || n), md5(n || ' ' || id), 'computer', '', '', now(), now(), '8.2.1', 'x86_64-pc-linux-gnu',
       3600, 16, 'GenuineIntel', 'Intel(R) Core(TM) i7-12700K [Family 6 Model 151 Stepping 2]', '', 4.2e9 + id, 1.3e10,
       1e9, 34359738368, 26214400, 8589934592, 1e12, 'Linux Debian',
       'Debian GNU/Linux 12 (bookworm) [6.1.0-18-amd64|libc 2.36]', '', '7.0.14',
       '[{{"type": "NVIDIA", "name": "NVIDIA GeForce RTX 3060", "count": 1, "driver_version": "535.154"}}]', '', '[]'
  FROM portal_user, generate_series(1, %(hosts)s) n;
INSERT INTO credit_hostcredit (host_id, total_credit, expavg_credit, expavg_at)
SELECT id, (id %% 100000 + 1) * 617.28394505, id * 0.06172839, now() - id %% 100 * interval '1 hour' FROM portal_host;
ANALYZE portal_user, portal_host, credit_exportconsent, credit_usercredit, credit_hostcredit
"""


def fill(nusers: int, hosts_each: int = HOSTS_EACH) -> None:
    """Insert volunteers with credit and computers, all of whom are published; into empty tables."""
    execute(*_FILL.format().split(";\n"), users=nusers, hosts=hosts_each)


def measure() -> dict[str, Any]:
    """Measure records a second, those of COPY, their ratio, and the peak memory of the exporting process."""
    fill(USERS)
    with tempfile.TemporaryDirectory(dir=settings.VAR_DIR) as folder:
        return beside_copy(lambda: _timed_export(folder))


def beside_copy(work: Callable[[], tuple[float, int]]) -> dict[str, Any]:
    """Return seconds and kilobytes of ``work``, which reads or writes all records, next to their COPY; the best
    rounds.
    """
    rows = USERS * (1 + HOSTS_EACH)
    copies, times, kilobytes = zip(*[(timed_copy(), *work()) for _ in range(ROUNDS)], strict=True)
    return {
        "records": rows,
        "rate": round(rows / min(times)),
        "copy": round(rows / min(copies)),
        "ratio": round(min(copies) / min(times), 2),
        "megabytes": round(max(kilobytes) / 1024),
    }


def _timed_export(folder: str) -> tuple[float, int]:
    """Return seconds, without the start of its process, and the peak memory of that process in kilobytes."""
    kilobytes = most_memory_kb("export_statistics", FILES_DIR=folder)
    made = StatisticsExport.objects.latest("pk")
    assert made.finished_at is not None  # the command did not fail
    return (made.finished_at - made.started_at).total_seconds(), kilobytes


def timed_copy() -> float:
    began = time.perf_counter()
    with psycopg.connect(**psycopg_params(), autocommit=True) as reader:
        reader.execute(sql.SESSION)
        for statement in (sql.USERS, sql.HOSTS):
            with reader.cursor() as cursor, cursor.copy(statement) as rows:
                for _ in rows:
                    pass
    return time.perf_counter() - began
