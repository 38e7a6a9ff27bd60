"""Scheduler RPCs per second over HTTP that get two jobs each, compared with the SQL floor of the same run."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from django.conf import settings
from django.utils import timezone

from credit.models import App
from portal.clients import sync_driver
from scheduler.rpc import answer as rpc_answer
from scheduler.wire.requests import parse_request
from tools.benchmarks import scheduler_queue as queue
from tools.benchmarks.floors import scheduler_rpc as floor
from tools.benchmarks.harness import load
from tools.benchmarks.harness.rounds import Measured, beside_floor, in_turns
from tools.benchmarks.harness.server import server
from tools.benchmarks.harness.statements import statements

CONCURRENCY: Final = 16
SECS: Final = 3.0
ROUNDS: Final = 3
WAITING: Final = (1_000, 100_000, 1_000_000)
"""Lengths at which the queue is held; the rate should be the same with each."""


def measure() -> dict[str, Any]:
    """Measure the site and the floor alternately for each length of the queue; medians of the rounds."""
    app, members = queue.create()
    report: dict[str, Any] = {"hosts": queue.HOSTS, "jobs_per_rpc": queue.JOBS_PER_RPC}
    with server() as port:
        queue.fill(app, WAITING[1])
        load.introduce(port, "/project/scheduler", (member.request() for member in members))
        queue.take_back(members)
        report["statements"] = _statements(members[0])
        for njobs in WAITING:
            queue.fill(app, njobs)
            floor.create(njobs)
            queue.settle()
            report[f"{njobs}_waiting"] = _measured(port, app, members, njobs)
    return report


def _measured(port: int, app: App, members: list[queue.QueueMember], njobs: int) -> dict[str, float]:
    """Measure with this many jobs waiting. A short queue lasts a moment: new jobs are added as others are sent."""

    def ours() -> Measured:
        queue.take_back(members)
        with queue.held(partial(queue.add, app), lambda: sum(len(member.jobs) for member in members), njobs):
            # Every connection plans its statements, and again after a vacuum.
            load.run(partial(_client, port, members), CONCURRENCY, 0.5)
            return load.run(partial(_client, port, members), CONCURRENCY, SECS)

    return beside_floor(*in_turns(ROUNDS, ours, lambda: floor.measure(CONCURRENCY, SECS, njobs)))


def _client(port: int, members: list[queue.QueueMember], number: int) -> Callable[[], None]:
    client = load.Client(port, "/project/scheduler")
    mine = itertools.cycle(members[number::CONCURRENCY])

    def step() -> None:
        member = next(mine)
        reply = client.post(member.request())
        if member.read(reply) != queue.JOBS_PER_RPC:
            raise RuntimeError(reply[:600].decode(errors="replace"))

    return step


def _statements(member: queue.QueueMember) -> int:
    """Return the statements of one request of a known computer, once this process has ready jobs."""

    def answer() -> None:
        member.read(sync_driver.run(rpc_answer.answer(parse_request(member.request()), now=timezone.now())))

    settings.MIN_SENDWORK_INTERVAL_SECS = 0  # as in the server
    # The server's processes still hold leases of the jobs that they had ready while computers were introduced.
    for _ in range(20):
        answer()
    return statements(answer)
