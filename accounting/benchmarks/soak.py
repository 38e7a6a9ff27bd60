"""Full load for minutes while thousands of connections send slowly or nothing: response times and memory."""

from __future__ import annotations

import asyncio
import os
import random
import statistics
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.request import urlopen

from accounting.benchmarks import am_rpc, fleet
from portal.benchmarks import load
from portal.benchmarks.server import server

SECS: Final = float(os.environ.get("SOAK_SECS", "600"))
CONCURRENCY: Final = int(os.environ.get("SOAK_CONCURRENCY", "16"))
SLOW: Final = 2_000
PATIENCE_SECS: Final = 120
"""For a slow connection to be ended by the server."""
_PATHS: Final = ("/rpc.php", "/project/file_upload_handler", "/project/scheduler", "/account/login/")


def measure() -> dict[str, Any]:
    """Requests per second, times of pages and probes meanwhile, what became of the slow connections, megabytes."""
    members = fleet.create()
    with server() as port, _slow_connections(port) as ended, ThreadPoolExecutor(1) as thread:
        over = threading.Event()
        watching = thread.submit(_watch, port, over)
        try:
            measured = load.run(partial(am_rpc.client, port, members), CONCURRENCY, SECS)
        finally:
            over.set()
        times, megabytes = watching.result()
    return {
        "secs": SECS,
        "rate": round(measured.rate),
        "p99_ms": measured.p99_ms,
        **{f"{name}_ms": _spread(each) for name, each in times.items()},
        "slow_connections": dict(ended),
        "megabytes": {f"at_{100 * n // 10}%": _at(megabytes, n) for n in range(1, 11)},
    }


def _spread(times: list[float]) -> dict[str, float]:
    cuts = statistics.quantiles(times, n=100)
    return {"n": len(times), "p50": round(cuts[49], 1), "p99": round(cuts[98], 1)}


def _at(values: list[int], tenth: int) -> int:
    return values[min(len(values) - 1, len(values) * tenth // 10)]


def _watch(port: int, over: threading.Event) -> tuple[dict[str, list[float]], list[int]]:
    """Ask for a probe and a page again and again, and how much memory the web processes have."""
    times: dict[str, list[float]] = {"healthz": [], "page": []}
    megabytes: list[int] = []
    while not over.wait(0.5):
        for name, path in (("healthz", "/healthz"), ("page", "/account/login/")):
            began = time.perf_counter()
            with urlopen(f"http://127.0.0.1:{port}{path}", timeout=load.TIMEOUT_SECS) as reply:
                reply.read()
            times[name].append((time.perf_counter() - began) * 1000)
        megabytes.append(sum(_resident_kb(pid) for pid in _descendants(os.getpid())) // 1024)
    return times, megabytes


def _descendants(pid: int) -> Iterator[int]:
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, file.read_text().split()):
            yield child
            yield from _descendants(child)


def _resident_kb(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith("VmRSS:")), 0)


@contextmanager
def _slow_connections(port: int) -> Iterator[Counter[str]]:
    """Hold so many until the block ends; each that the server ends is made anew. How they ended."""
    ended: Counter[str] = Counter()
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    holding = asyncio.run_coroutine_threadsafe(_hold(port, ended), loop)
    try:
        yield ended
    finally:
        holding.cancel()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


async def _hold(port: int, ended: Counter[str]) -> None:
    dice = random.Random(1)
    async with asyncio.TaskGroup() as group:
        for number in range(SLOW):
            group.create_task(_be_slow(port, number, ended, dice.uniform(0, 10)))


async def _be_slow(port: int, number: int, ended: Counter[str], wait_secs: float) -> None:
    """Say nothing, half a head, or a head and a byte every second; again once the server has ended it."""
    head = f"POST {_PATHS[number % 4]} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n".encode()
    begin = (b"", head[: len(head) // 2], head)[number % 3]
    await asyncio.sleep(wait_secs)
    while True:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(begin)
            async with asyncio.timeout(PATIENCE_SECS):
                await _trickle(reader, writer, is_body=begin == head)
            ended["by the server"] += 1
        except TimeoutError:
            ended["never"] += 1
        except OSError:
            ended["reset"] += 1
        finally:
            writer.close()


async def _trickle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_body: bool) -> None:
    at_end = asyncio.ensure_future(reader.read(-1))
    while not at_end.done():
        if is_body:
            writer.write(b"x")
        await asyncio.wait([at_end], timeout=1.0)
    at_end.exception()
