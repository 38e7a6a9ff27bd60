"""Account-manager RPCs per second over HTTP, beside the SQL floor of the same run."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable
from typing import Any

from django.utils import timezone

from accounting import rpc
from accounting.benchmarks import fleet, floor
from accounting.protocol import parse_request
from portal.benchmarks import load
from portal.benchmarks.server import server
from portal.benchmarks.statements import statements
from portal.clients import plain

CONCURRENCIES = (1, 4, 16, 64)
SECS = 4.0
ROUNDS = 3


def measure() -> dict[str, Any]:
    """Rates and floors at each concurrency, in turns so that a drifting machine harms both alike; medians."""
    members = fleet.create()
    floor.create()
    results: dict[str, Any] = {"hosts": fleet.HOSTS, "request_bytes": len(members[0].request())}
    with server() as port:
        # Each host's first contact, which stores its hardware, comes once in its life: not what is measured.
        first_contacts = load.Client(port, "/rpc.php")
        for member in members:
            first_contacts.post(member.request())
        for concurrency in CONCURRENCIES:
            rounds = [
                (
                    load.run(lambda number: client(port, members, number), concurrency, SECS),
                    floor.measure(concurrency, SECS),
                )
                for _ in range(ROUNDS)
            ]
            results[f"concurrency_{concurrency}"] = _summary(rounds)
    return {**results["concurrency_16"], "statements": _statements(members[0]), **results}


def _statements(member: fleet.Member) -> int:
    """What one request of a known computer sends to the database, once this process knows the projects."""

    def answer() -> None:
        plain.run(rpc.answer(parse_request(member.request()), now=timezone.now(), address="127.0.0.1"))

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


def client(port: int, members: list[fleet.Member], number: int) -> Callable[[], None]:
    client = load.Client(port, "/rpc.php")
    mine = itertools.cycle(members[number::64])

    def step() -> None:
        reply = client.post(next(mine).request())
        if b"<error_num>" in reply or b"<repeat_sec>" not in reply:
            raise RuntimeError(reply[:300].decode(errors="replace"))

    return step
