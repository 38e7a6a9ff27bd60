"""Account-manager RPCs per second over HTTP, beside the SQL floor of the same run."""

from __future__ import annotations

import itertools
import os
import shlex
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.utils import timezone

from accounting import rpc
from accounting.benchmarks import fleet, floor, load
from accounting.benchmarks.statements import statements
from accounting.protocol import parse_request
from portal.leash import leashed

CONCURRENCIES = (1, 4, 16)
SECS = 4.0
ROUNDS = 3


def measure() -> dict[str, Any]:
    """Rates and floors at each concurrency, in turns so that a drifting machine harms both alike; medians."""
    members = fleet.create()
    floor.create()
    results: dict[str, Any] = {"hosts": fleet.HOSTS, "request_bytes": len(members[0].request())}
    with _server() as port:
        # Each host's first contact, which stores its hardware, comes once in its life: not what is measured.
        first_contacts = load.Client(port, "/rpc.php")
        for member in members:
            first_contacts.post(member.request())
        for concurrency in CONCURRENCIES:
            rounds = [
                (
                    load.run(lambda number: _client(port, members, number), concurrency, SECS),
                    floor.measure(concurrency, SECS),
                )
                for _ in range(ROUNDS)
            ]
            results[f"concurrency_{concurrency}"] = _summary(rounds)
    return {**results["concurrency_16"], "statements": _statements(members[0]), **results}


def _statements(member: fleet.Member) -> int:
    """What one request of a known computer sends to the database, once this process knows the projects."""

    def answer() -> None:
        rpc.answer(parse_request(member.request()), now=timezone.now(), address="127.0.0.1")

    answer()
    return statements(answer)


def _summary(rounds: list[tuple[load.Measured, load.Measured]]) -> dict[str, float]:
    ratios = [rpc.rate / bare.rate for rpc, bare in rounds]
    return {
        "rate": round(statistics.median(rpc.rate for rpc, _ in rounds)),
        "floor": round(statistics.median(bare.rate for _, bare in rounds)),
        "ratio": round(statistics.median(ratios), 3),
        "p50_ms": statistics.median(rpc.p50_ms for rpc, _ in rounds),
        "p99_ms": statistics.median(rpc.p99_ms for rpc, _ in rounds),
    }


def _client(port: int, members: list[fleet.Member], number: int) -> Callable[[], None]:
    client = load.Client(port, "/rpc.php")
    mine = itertools.cycle(members[number::16])

    def step() -> None:
        reply = client.post(next(mine).request())
        if b"<error_num>" in reply or b"<repeat_sec>" not in reply:
            raise RuntimeError(reply[:300].decode(errors="replace"))

    return step


@contextmanager
def _server() -> Iterator[int]:
    """The site as `make run` serves it, on a free loopback port and on this database."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {
        **os.environ,
        "PORT": str(port),
        "DATABASE_URL": settings.DATABASE_URL,
        "CACHE_URL": settings.CACHE_URL,
        "BROKER_URL": settings.BROKER_URL,
    }
    command = [word.replace("$PORT", str(port)) for word in shlex.split(_web_command())]
    with (settings.VAR_DIR / "bench-web.log").open("wb") as log:
        server = subprocess.Popen(leashed([sys.executable, *command[1:]]), stdout=log, stderr=log, env=environment)
    try:
        _await(port, server)
        yield port
    finally:
        server.terminate()
        server.wait(10)


def _web_command() -> str:
    lines = (settings.BASE_DIR / "Procfile").read_text().splitlines()
    return next(line.removeprefix("web:").strip() for line in lines if line.startswith("web:"))


def _await(port: int, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and server.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError("the web server did not start")
