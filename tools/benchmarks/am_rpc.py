"""Account-manager RPCs per second over HTTP, compared with the SQL floor of the same run."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any
from urllib.request import urlopen

from django.utils import timezone

from accounting.rpc import answer as rpc_answer
from accounting.wire.requests import parse_request
from portal.clients import sync_driver
from tools.benchmarks import am_fleet as fleet
from tools.benchmarks.floors import am_rpc as floor
from tools.benchmarks.harness import cpu, load, nginx
from tools.benchmarks.harness.rounds import Measured, beside_floor, in_turns
from tools.benchmarks.harness.server import server
from tools.benchmarks.harness.statements import statements

CONCURRENCIES = (1, 4, 16, 64)
SECS = 4.0
ROUNDS = 3
PEOPLE = 4


def measure() -> dict[str, Any]:
    """Measure rates and floors at each concurrency, alternately, so that a drifting machine affects both alike;
    medians.

    At 16 also behind nginx, if it is installed, and while people request pages as fast as they can.
    """
    members = fleet.create()
    floor.create()
    results: dict[str, Any] = {"hosts": fleet.HOSTS, "request_bytes": len(members[0].request())}
    with server() as port:
        load.introduce(port, "/rpc.php", (member.request() for member in members))
        for concurrency in CONCURRENCIES:
            results[f"concurrency_{concurrency}"] = _measured(port, members, concurrency)
        if nginx.is_installed():
            with nginx.before(port) as front:
                results["behind_nginx_16"] = _measured(front, members, 16)
        with _busy_pages(port):
            results["while_pages_are_busy_16"] = _measured(port, members, 16)
    return {**results["concurrency_16"], "statements": _statements(members[0]), **results}


def _measured(port: int, members: list[fleet.Member], concurrency: int) -> dict[str, float]:
    def ours() -> Measured:
        before = cpu.used_secs()
        measured = load.run(partial(client, port, members), concurrency, SECS)
        used = cpu.per_request(before, cpu.used_secs(), measured.rate * SECS)
        return Measured(measured.rate, {**measured.figures, **used})

    return beside_floor(*in_turns(ROUNDS, ours, lambda: floor.measure(concurrency, SECS)))


@contextmanager
def _busy_pages(port: int) -> Iterator[None]:
    """Request a page as several people, again and again, until the block ends."""
    over = threading.Event()

    def ask() -> None:
        while not over.is_set():
            with urlopen(f"http://127.0.0.1:{port}/account/login/", timeout=load.TIMEOUT_SECS) as reply:
                reply.read()

    with ThreadPoolExecutor(PEOPLE) as people:
        asking = [people.submit(ask) for _ in range(PEOPLE)]
        try:
            yield
        finally:
            over.set()
        for process in asking:
            process.result()


def _statements(member: fleet.Member) -> int:
    """Return the database messages for one request of a known computer, once this process knows the projects."""

    def answer() -> None:
        sync_driver.run(rpc_answer.answer(parse_request(member.request()), now=timezone.now(), address="127.0.0.1"))

    answer()
    return statements(answer)


def client(port: int, members: list[fleet.Member], number: int) -> Callable[[], None]:
    return asks(port, itertools.cycle(members[number::64]))


def asks(port: int, members: Iterator[fleet.Member]) -> Callable[[], None]:
    """Return a connection over which these computers in turn send their next requests."""
    client = load.Client(port, "/rpc.php")

    def step() -> None:
        reply = client.post(next(members).request())
        if b"<error_num>" in reply or b"<repeat_sec>" not in reply:
            raise RuntimeError(reply[:300].decode(errors="replace"))

    return step
