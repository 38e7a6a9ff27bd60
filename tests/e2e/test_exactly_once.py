"""What the site has acknowledged is booked once, whatever dies: clients give up, servers are ended and killed.

The short form is part of every run; `make faults` sends 100,000 requests.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import struct
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from accounting.engine.amounts import MICRO
from accounting.ledger import check
from accounting.models import HostProject
from tests.support.site_process import Site
from tools.benchmarks import am_fleet as fleet

NREQUESTS = int(os.environ.get("FAULT_REQUESTS", "2000"))
HOSTS = 60
THREADS = 12
PROCESSES = 2
SIGNALS = 3
# granian takes a process that ends twice within six seconds for one that cannot start, and gives up.
SECS_BETWEEN_SIGNALS = 3.5
PATIENCE_SECS = 60
HEAD = b"POST /rpc.php HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
FAULTS = ("none",) * 6 + ("gone before the reply", "gone before the end", "reset", "twice at once")


@pytest.fixture
def two_processes(transactional_db: None, site_var_dir: Path, tmp_path: Path) -> Iterator[Site]:
    with Site(site_var_dir, tmp_path / "site.log", GRANIAN_WORKERS=str(PROCESSES)) as site:
        yield site


@dataclass
class Computer:
    """One of the fleet, used by one thread at a time; ``acknowledged``: seconds of work that the site has confirmed."""

    member: fleet.Member
    address: tuple[str, int]
    acknowledged: int = 0

    def report(self, fault: str = "none") -> bool:
        """Report one more second of work; whether the site has confirmed it."""
        message = self.member.request()
        nsecs = self.member.sent
        if fault == "twice at once":
            with ThreadPoolExecutor(2) as both:
                confirmed = any(list(both.map(lambda _: self._send(message, "none"), range(2))))
        else:
            confirmed = self._send(message, fault)
        if confirmed:
            self.acknowledged = nsecs
        return confirmed

    def _send(self, body: bytes, fault: str) -> bool:
        head = b"POST /rpc.php HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(
            body
        )
        try:
            with socket.create_connection(self.address, PATIENCE_SECS) as connection:
                if fault == "gone before the end":
                    connection.sendall(head + body[: len(body) // 2])
                    return False
                connection.sendall(head + body)
                if fault == "reset":
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    return False
                if fault == "gone before the reply":
                    return False
                return _is_confirmed(_read_all(connection))
        except OSError:
            return False  # the process was killed, or a new one is not there yet


def _read_all(connection: socket.socket) -> bytes:
    received = b""
    while data := connection.recv(65_536):
        received += data
    return received


def _is_confirmed(reply: bytes) -> bool:
    return b"</acct_mgr_reply>" in reply and b"<repeat_sec>" in reply and b"<error_num>" not in reply


def _credited(computer: Computer) -> set[int]:
    """Micro-seconds of CPU time that are booked for each of the computer's projects."""
    token = computer.member.tail.partition(b"<host>")[2].partition(b"</host>")[0].decode()
    return {int(row.credited[2]) for row in HostProject.objects.filter(host__token=token)}


def test_what_was_acknowledged_is_booked_once(two_processes: Site) -> None:
    at = urlsplit(two_processes.url)
    assert at.hostname and at.port
    computers = [Computer(member, (at.hostname, at.port)) for member in fleet.create(HOSTS)]
    for computer in computers:
        while not (computer.report() and computer.report()):
            # A process that was killed is being started again: only asking tells when it is there.
            time.sleep(0.1)
    begun = {id(computer): computer.member.sent for computer in computers}
    before = {id(computer): _credited(computer) for computer in computers}
    _report_with_faults(two_processes, computers)
    for computer in computers:
        deadline = time.monotonic() + PATIENCE_SECS
        while not computer.report():
            assert time.monotonic() < deadline, two_processes.log()[-2000:]
            # As above.
            time.sleep(0.1)
    for computer in computers:
        (base,) = before[id(computer)]
        nsecs = computer.acknowledged - begun[id(computer)]
        assert computer.acknowledged == computer.member.sent
        assert _credited(computer) == {base + nsecs * MICRO}
    assert list(check.differences()) == []


def _report_with_faults(site: Site, computers: list[Computer]) -> None:
    """Let the computers report, with faults, while the processes are ended and killed in turns."""
    over = threading.Event()
    dice = random.Random(2026)

    def work(number: int) -> None:
        own = random.Random(number)
        mine = computers[number::THREADS]
        nreports = 0
        while nreports < NREQUESTS // THREADS or not over.is_set():
            own.choice(mine).report(own.choice(FAULTS))
            nreports += 1

    def kill() -> None:
        try:
            for _ in range(max(SIGNALS, NREQUESTS // 3000)):
                # The load goes on meanwhile; the pause is what granian wants between two ends of one process.
                time.sleep(SECS_BETWEEN_SIGNALS)
                pids = sorted(site.worker_pids(), key=_started)
                # The one that has lived longest, so that they take turns.
                os.kill(pids[0], dice.choice([signal.SIGKILL, signal.SIGTERM]))
        finally:
            over.set()

    with ThreadPoolExecutor(THREADS + 1) as pool:
        for done in [pool.submit(kill), *[pool.submit(work, number) for number in range(THREADS)]]:
            done.result()


def _started(pid: int) -> int:
    """When this process began, in ticks since the machine did."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
