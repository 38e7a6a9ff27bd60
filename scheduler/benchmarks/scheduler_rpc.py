"""Scheduler RPCs per second over HTTP that get two jobs each, beside the SQL floor of the same run."""

from __future__ import annotations

import itertools
import statistics as stats
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from django.conf import settings
from django.utils import timezone

from credit.models import App
from portal.benchmarks import load
from portal.benchmarks.server import server
from portal.benchmarks.statements import statements
from portal.clients import plain
from scheduler.benchmarks import floor, queue
from scheduler.rpc import answer as rpc_answer
from scheduler.wire.requests import parse_request

CONCURRENCY: Final = 16
SECS: Final = 3.0
ROUNDS: Final = 3
WAITING: Final = (1_000, 100_000, 1_000_000)
"""Lengths at which the queue is held; the rate is to be the same with each."""


def measure() -> dict[str, Any]:
    """For each length of the queue the site and the floor in turns; medians of the rounds."""
    app, members = queue.create()
    report: dict[str, Any] = {"hosts": queue.HOSTS, "jobs_per_rpc": queue.JOBS_PER_RPC}
    with server() as port:
        queue.fill(app, WAITING[1])
        introduce = load.Client(port, "/project/scheduler")
        for member in members:
            # Each computer's first contact stores its hardware: once in its life.
            introduce.post(member.request())
        queue.take_back(members)
        report["statements"] = _statements(members[0])
        for njobs in WAITING:
            queue.fill(app, njobs)
            floor.create(njobs)
            queue.settle()
            report[f"{njobs}_waiting"] = _measured(port, app, members, njobs)
    return report


def _measured(port: int, app: App, members: list[queue.Member], njobs: int) -> dict[str, float]:
    """With this many jobs waiting. A short queue lasts a moment: new jobs come as others are sent, of the floor too."""
    rounds = []
    for _ in range(ROUNDS):
        queue.take_back(members)
        with queue.held(partial(queue.add, app), lambda: sum(len(member.jobs) for member in members), njobs):
            # Every connection plans its statements, after a vacuum anew.
            load.run(partial(_client, port, members), CONCURRENCY, 0.5)
            ours = load.run(partial(_client, port, members), CONCURRENCY, SECS)
        rounds.append((ours, floor.measure(CONCURRENCY, SECS, njobs)))
    return {
        "rate": round(stats.median(ours.rate for ours, _ in rounds)),
        "floor": round(stats.median(bare.rate for _, bare in rounds)),
        "ratio": round(stats.median(ours.rate / bare.rate for ours, bare in rounds), 3),
        "p50_ms": stats.median(ours.p50_ms for ours, _ in rounds),
        "p99_ms": stats.median(ours.p99_ms for ours, _ in rounds),
    }


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
    """The statements of one request of a known computer, once this process has ready jobs."""

    def answer() -> None:
        member.read(plain.run(rpc_answer.answer(parse_request(member.request()), now=timezone.now())))

    settings.MIN_SENDWORK_INTERVAL_SECS = 0  # as the server has it
    # The server's processes still hold leases of the jobs that they had ready while computers were introduced.
    for _ in range(20):
        answer()
    return statements(answer)
