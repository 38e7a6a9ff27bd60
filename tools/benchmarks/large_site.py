"""Account-manager RPCs on a site with as many computers as all of BOINC has, compared in one run with a few of them.

The first computer makes its reports for real; the others are copies of its rows, with their own numbers and secrets.
The measurements differ only in which computers ask: a few, whose rows the database has in its memory, or any of all.
"""

from __future__ import annotations

import hashlib
import os
import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from django.db import connection
from django.utils import timezone

from accounting.rpc import answer as rpc_answer
from accounting.wire.requests import parse_request
from portal.clients import sync_driver
from portal.models import Host
from tools.benchmarks import am_fleet as fleet
from tools.benchmarks import am_rpc
from tools.benchmarks.floors import am_rpc as floor
from tools.benchmarks.harness import load
from tools.benchmarks.harness.rounds import Measured, beside_floor, in_turns, median_rate, median_ratio
from tools.benchmarks.harness.server import server

DEVICES: Final = int(os.environ.get("LARGE_SITE_DEVICES", "700000"))
CONCURRENCY: Final = 16
SECS: Final = 8.0
ROUNDS: Final = 5
REPORTS: Final = 2
"""Reports of the first computer, so that its rows are those of one that has reported before."""

# The columns that identify a row's owner. A row of the n-th copy has the first one's number, plus n.
_NUMBERS: Final = frozenset({"user_id", "owner_id", "host_id"})
_OWN: Final = {
    "portal_user": {
        "id": "first.id + n",
        "email": "'device' || n || '@example.org'",
        "cross_project_id": "md5('user' || n)",
    },
    "portal_host": {
        "id": "first.id + n",
        "token": "md5('token' || n)",
        "host_cpid": "lpad(to_hex(first.id + n), 32, '0')",
    },
    "portal_clientkey": {"id": "first.id + n", "key_hash": "sha256(md5('key' || n)::bytea)"},
    "accounting_hostledger": {},
    "accounting_answer": {},
    "accounting_hostproject": {},
    "accounting_day": {},
}
"""The tables with rows of a computer that reports, and the columns that must differ; in the order of foreign keys."""


def measure() -> dict[str, Any]:
    """Measure rates alternately, medians; ``all_to_few``: the ratio of each round."""
    first = fleet.create(1)[0]
    for _ in range(REPORTS):
        sync_driver.run(rpc_answer.answer(parse_request(first.request()), now=timezone.now(), address="127.0.0.1"))
    copied = Host.objects.get()
    _copy()
    floor.create()
    reports: dict[int, int] = {}
    with server() as port:

        def asked(ndevices: int) -> Measured:
            return load.run(partial(_client, port, copied, reports, ndevices), CONCURRENCY, SECS)

        few, every, bare = in_turns(
            ROUNDS, lambda: asked(fleet.HOSTS), lambda: asked(DEVICES), lambda: floor.measure(CONCURRENCY, SECS)
        )
    return {
        "devices": DEVICES,
        "database_mb": _database_mb(),
        **{name: round(median_rate(side)) for name, side in (("few", few), ("all", every), ("floor", bare))},
        **{f"{name}_p99_ms": beside_floor(side, bare)["p99_ms"] for name, side in (("few", few), ("all", every))},
        "all_to_few": median_ratio(every, few),
    }


def _copy() -> None:
    with connection.cursor() as cursor:
        for table, own in _OWN.items():
            columns = [column.name for column in connection.introspection.get_table_description(cursor, table)]
            numbers = {name: f"first.{name} + n" for name in columns if name in _NUMBERS}
            values = [(numbers | own).get(name, f'first."{name}"') for name in columns]
            names = ", ".join(f'"{name}"' for name in columns)
            copies = f'SELECT {", ".join(values)} FROM "{table}" first, generate_series(1, %s) n'
            cursor.execute(f'INSERT INTO "{table}" ({names}) {copies}', [DEVICES])
            cursor.execute(f'VACUUM ANALYZE "{table}"')


def _client(port: int, first: Host, reports: dict[int, int], ndevices: int, number: int) -> Callable[[], None]:
    """Return computers drawn at random, each connection its own ones; ``reports``: how many each has made."""
    draw = random.Random(number)

    def members() -> Iterator[fleet.Member]:
        while True:
            copy = draw.randrange(1 + number, ndevices + 1, CONCURRENCY)
            token, key = (
                hashlib.md5(f"{what}{copy}".encode(), usedforsecurity=False).hexdigest() for what in ("token", "key")
            )
            member = fleet.member(Host(pk=first.pk + copy, domain_name=first.domain_name, token=token), key)
            member.sent = reports.get(copy, REPORTS)
            reports[copy] = member.sent + 1
            yield member

    return am_rpc.asks(port, members())


def _database_mb() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_database_size(current_database())")
        nbytes: int = cursor.fetchone()[0]
    return round(nbytes / 1e6)
