"""A load generator: threads with a connection each, raw sockets, latencies of every request."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable
from typing import Final

from tools.benchmarks.harness.rounds import Measured, percentile

TIMEOUT_SECS: Final = 30


def run(work: Callable[[int], Callable[[], None]], concurrency: int, secs: float) -> Measured:
    """Call ``work(n)()`` again and again in each of this many threads, for this long; ``work(n)`` prepares thread n.

    The rate is the sum of the rates of the threads, each measured until its last call ended. Otherwise calls that end
    after the time would make short rounds look slow.
    """
    latencies: list[list[float]] = [[] for _ in range(concurrency)]
    rates = [0.0] * concurrency
    failures: list[BaseException] = []
    ready = threading.Barrier(concurrency + 1)
    stop = threading.Event()

    def loop(number: int) -> None:
        try:
            step = work(number)
            step()
            ready.wait()
            mine = latencies[number]
            began = time.perf_counter()
            while not stop.is_set():
                started = time.perf_counter()
                step()
                mine.append(time.perf_counter() - started)
            rates[number] = len(mine) / (time.perf_counter() - began)
        except BaseException as error:
            failures.append(error)
            ready.abort()
            stop.set()

    threads = [threading.Thread(target=loop, args=(number,), daemon=True) for number in range(concurrency)]
    for thread in threads:
        thread.start()
    try:
        ready.wait(timeout=TIMEOUT_SECS)
        stop.wait(secs)
    finally:
        stop.set()
        for thread in threads:
            thread.join(TIMEOUT_SECS)
        if failures:
            raise failures[0]
    times = sorted(latency for mine in latencies for latency in mine)
    return Measured(sum(rates), {f"p{percent}_ms": round(percentile(times, percent) * 1000, 3) for percent in (50, 99)})


def introduce(port: int, path: str, requests: Iterable[bytes]) -> None:
    """Send each computer's first request, which stores its hardware: it happens once, so it is not measured."""
    client = Client(port, path)
    for request in requests:
        client.post(request)


class Client:
    """One kept-alive HTTP connection that posts bodies and reads replies with a Content-Length."""

    def __init__(self, port: int, path: str) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), TIMEOUT_SECS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # The kernel's own time-out: Python's would cost an extra system call for each send or receive.
        self.socket.settimeout(None)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", TIMEOUT_SECS, 0))
        self.head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: */*\r\n"
            "User-Agent: BOINC client (x86_64-pc-linux-gnu 8.2.4)\r\n"
            "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: "
        ).encode()

    def post(self, body: bytes) -> bytes:
        """Return the reply's body; RuntimeError unless its status is 200."""
        self.socket.sendall(b"%b%d\r\n\r\n%b" % (self.head, len(body), body))
        reply = self.socket.recv(65536)
        while (end := reply.find(b"\r\n\r\n")) < 0:
            reply += self._more()
        head = reply[:end].lower()
        if not head.startswith(b"http/1.1 200"):
            raise RuntimeError(reply[:300].decode(errors="replace"))
        length = int(head.split(b"content-length:", 1)[1].split(b"\r\n", 1)[0])
        while len(reply) < end + 4 + length:
            reply += self._more()
        return reply[end + 4 :]

    def _more(self) -> bytes:
        data = self.socket.recv(65536)
        if not data:
            raise RuntimeError("the server closed the connection")
        return data
