"""A fraction of the full load for minutes, while thousands of connections send slowly or nothing.

Meanwhile people look at pages, results are validated, and statistics are exported. Two things must hold: no request
fails, and the web processes' memory stays flat.
"""

from __future__ import annotations

import asyncio
import os
import random
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, Final
from urllib.request import urlopen

from django.conf import settings

from tools.benchmarks import am_fleet as fleet
from tools.benchmarks import am_rpc
from tools.benchmarks.harness import load
from tools.benchmarks.harness.server import server, site_environment

SECS: Final = float(os.environ.get("SOAK_SECS", "1200"))
CONCURRENCY: Final = int(os.environ.get("SOAK_CONCURRENCY", "16"))
SHARE: Final = float(os.environ.get("SOAK_SHARE", "0.8"))
"""Fraction of the site's rate at full load, alongside all the other work; 1: as much as it can."""
CAPACITY_SECS: Final = min(30.0, SECS / 4)
MOST_GROWTH: Final = 0.03
"""The fraction by which memory may grow over the second half, by a straight line."""
SLOW: Final = 2_000
PATIENCE_SECS: Final = 120
"""The time within which the server must end a slow connection."""
_PATHS: Final = ("/rpc.php", "/project/file_upload_handler", "/project/scheduler", "/account/login/")


class NotSound(Exception):
    """Requests failed, or memory grew."""


def measure() -> dict[str, Any]:
    """Measure requests per second, times of pages and probes meanwhile, the fate of the slow connections, megabytes.

    Raises NotSound if any request, page, validation or export failed, or memory grew.
    """
    members = fleet.create()
    with server() as port, _slow_connections(port) as ended, _other_work() as work, ThreadPoolExecutor(1) as thread:
        full = load.run(partial(am_rpc.client, port, members), CONCURRENCY, CAPACITY_SECS)
        over = threading.Event()
        watching = thread.submit(_watch, port, over)
        errors: Counter[str] = Counter()
        client = partial(_paced, port, members, errors, full.rate * SHARE if SHARE < 1 else inf)
        try:
            measured = load.run(client, CONCURRENCY, SECS)
        finally:
            over.set()
        times, megabytes = watching.result()
    growth = _growth(megabytes[len(megabytes) // 2 :])
    figures = {
        "secs": SECS,
        "full_rate": round(full.rate),
        "rate": round(measured.rate),
        "p99_ms": measured.figures["p99_ms"],
        **{f"{name}_ms": _spread(secs) for name, secs in times.items()},
        "slow_connections": dict(ended),
        "errors": dict(errors),
        "other_work": dict(work),
        "megabytes": {f"at_{100 * n // 10}%": _at(megabytes, n) for n in range(1, 11)},
        "growth_in_second_half": round(growth, 4),
    }
    failed = {name: times for name, times in work.items() if name.startswith("failed")}
    if errors or failed or growth > MOST_GROWTH:
        raise NotSound(f"requests failed: {dict(errors)}, other work: {failed}, or memory grew: {figures}")
    return figures


def _paced(
    port: int, members: list[fleet.Member], errors: Counter[str], rate: float, number: int
) -> Callable[[], None]:
    """Run one of the clients that together send this many requests per second; a failure is counted, and it
    continues.
    """
    step = am_rpc.client(port, members, number)
    pause_secs = CONCURRENCY / rate
    due = time.perf_counter()

    def paced() -> None:
        nonlocal step, due
        try:
            step()
        except (RuntimeError, OSError) as error:
            errors[f"{type(error).__name__}: {str(error)[:100]}"] += 1
            step = am_rpc.client(port, members, number)
        due += pause_secs
        now = time.perf_counter()
        if due > now:
            time.sleep(due - now)
        else:
            # It does not make up for a pause of the machine by a burst.
            due = now

    return paced


@contextmanager
def _other_work() -> Iterator[Counter[str]]:
    """Report and validate results, and export statistics, again and again until the block ends; yield how often."""
    done: Counter[str] = Counter()
    over = threading.Event()
    with ThreadPoolExecutor(2) as threads:
        commands = {
            "validations": ["simulate_results", "--app=soak", "--hosts=50", "--jobs=500", "--days=1", "--validate"],
            "exports": ["export_statistics"],
        }
        working = [threads.submit(_repeat, name, command, over, done) for name, command in commands.items()]
        try:
            yield done
        finally:
            over.set()
        for process in working:
            process.result()


def _repeat(name: str, command: list[str], over: threading.Event, done: Counter[str]) -> None:
    while not over.is_set():
        program = [sys.executable, "manage.py", *command]
        ended = subprocess.run(program, cwd=settings.BASE_DIR, env=site_environment(), capture_output=True)
        done[name if ended.returncode == 0 else f"failed {name}: {ended.stderr.decode()[-200:]}"] += 1
        # Like a task that runs every few seconds.
        over.wait(5)


def _growth(megabytes: list[int]) -> float:
    """Return the fraction by which the memory grew, by the straight line that fits best."""
    if len(megabytes) < 2:
        return 0.0
    slope, begin = statistics.linear_regression(range(len(megabytes)), megabytes)
    return slope * (len(megabytes) - 1) / begin


def _spread(times: list[float]) -> dict[str, float]:
    cuts = statistics.quantiles(times, n=100)
    return {"n": len(times), "p50": round(cuts[49], 1), "p99": round(cuts[98], 1)}


def _at(values: list[int], tenth: int) -> int:
    return values[min(len(values) - 1, len(values) * tenth // 10)]


_WATCHED: Final = {
    "healthz": "/healthz",
    "page": "/account/login/",
    "top_page": "/project/top/",
    "projects": "/projects/",
}


def _watch(port: int, over: threading.Event) -> tuple[dict[str, list[float]], list[int]]:
    """Request a probe and pages again and again, and record the memory of the web processes."""
    times: dict[str, list[float]] = {name: [] for name in _WATCHED}
    megabytes: list[int] = []
    while not over.wait(0.5):
        for name, path in _WATCHED.items():
            began = time.perf_counter()
            with urlopen(f"http://127.0.0.1:{port}{path}", timeout=load.TIMEOUT_SECS) as reply:
                reply.read()
            times[name].append((time.perf_counter() - began) * 1000)
        megabytes.append(sum(_resident_kb(pid) for pid in _web_processes()) // 1024)
    return times, megabytes


def _descendants(pid: int) -> Iterator[int]:
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, file.read_text().split()):
            yield child
            yield from _descendants(child)


def _web_processes() -> Iterator[int]:
    """Return the web processes, not those that validate and export: they come and go."""
    for pid in _descendants(os.getpid()):
        if b"manage.py" not in Path(f"/proc/{pid}/cmdline").read_bytes():
            yield pid


def _resident_kb(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith("VmRSS:")), 0)


@contextmanager
def _slow_connections(port: int) -> Iterator[Counter[str]]:
    """Hold this many until the block ends; each that the server ends is replaced. Yield how they ended."""
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
    """Send nothing, half a head, or a head and a byte every second; again once the server has ended it."""
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
