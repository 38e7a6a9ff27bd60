"""Scheduler RPCs per second over HTTP that get two jobs each, beside the SQL floor of the same run."""

from __future__ import annotations

import itertools
import statistics as stats
from collections.abc import Callable
from typing import Any, Final

from django.utils import timezone

from portal.benchmarks import load
from portal.benchmarks.server import server
from portal.benchmarks.statements import statements
from scheduler import rpc
from scheduler.benchmarks import floor, queue
from scheduler.protocol import parse_request

CONCURRENCY: Final = 16
SECS: Final = 3.0
ROUNDS: Final = 3
WAITING: Final = 100_000
OTHERS: Final = (1_000, 1_000_000)
"""Lengths of the queue that the rate is to be the same with."""


def measure() -> dict[str, Any]:
    """Rates with 100,000 jobs waiting and the floor in turns, then with other lengths of the queue; medians."""
    app, members = queue.create()
    floor.create(WAITING)
    report: dict[str, Any] = {"hosts": queue.HOSTS, "jobs_per_rpc": queue.JOBS_PER_RPC}
    with server() as port:
        queue.fill(app, WAITING)
        introduce = load.Client(port, "/project/scheduler")
        for member in members:
            # Each computer's first contact stores its hardware: once in its life.
            introduce.post(member.request())
        rounds = []
        for _ in range(ROUNDS):
            queue.reset(members)
            rounds.append((_round(port, members, SECS), floor.measure(CONCURRENCY, SECS)))
        report |= {
            "rate": round(stats.median(ours.rate for ours, _ in rounds)),
            "floor": round(stats.median(bare.rate for _, bare in rounds)),
            "ratio": round(stats.median(ours.rate / bare.rate for ours, bare in rounds), 3),
            "p50_ms": stats.median(ours.p50_ms for ours, _ in rounds),
            "p99_ms": stats.median(ours.p99_ms for ours, _ in rounds),
        }
        queue.reset(members)
        report["statements"] = _statements(members[0])
        for njobs in OTHERS:
            report[f"rate_{njobs}_waiting"] = _rate(port, app, members, njobs)
    return report


def _round(port: int, members: list[queue.Member], secs: float) -> load.Measured:
    return load.run(lambda number: _client(port, members, number), CONCURRENCY, secs)


def _rate(port: int, app: Any, members: list[queue.Member], njobs: int) -> int:
    """With so many jobs waiting; a short queue lasts a moment only, so its rounds are short and many."""
    queue.fill(app, njobs)
    for member in members:
        member.jobs.clear()
    secs = min(SECS, njobs / queue.JOBS_PER_RPC / 8_000)
    rates = []
    for _ in range(ROUNDS if secs == SECS else 5 * ROUNDS):
        queue.reset(members)
        rates.append(_round(port, members, secs).rate)
    return round(stats.median(rates))


def _client(port: int, members: list[queue.Member], number: int) -> Callable[[], None]:
    client = load.Client(port, "/project/scheduler")
    mine = itertools.cycle(members[number::CONCURRENCY])

    def step() -> None:
        member = next(mine)
        reply = client.post(member.request())
        if member.read(reply) != queue.JOBS_PER_RPC:
            raise RuntimeError(reply[:600].decode(errors="replace"))

    return step


def _statements(member: queue.Member) -> int:
    """What one request of a known computer sends to the database, once this process knows the apps."""

    def answer() -> None:
        member.read(rpc.answer(parse_request(member.request()), now=timezone.now()))

    answer()
    return statements(answer)
