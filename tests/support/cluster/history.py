"""What clients were told, written down as it happened, and compared with what is stored, without the site's own code.

An operation that was acknowledged must be stored once; one that was not may be stored once or not at all. All clients
count up or name what they report, so that both can be told from the tables.
"""

from __future__ import annotations

import random
import re
import socket
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle, pairwise
from typing import Any, Final, Protocol

import psycopg

from tests.support.scheduler_clients import Computer, names, result_xml
from tests.support.wait import wait_until
from tools.benchmarks import am_fleet as fleet

PATIENCE_SECS: Final = 90.0
PAUSE_SECS: Final = 0.1
"""Between two requests of one thread, so that the machine has time for the servers."""
MICRO: Final = 1_000_000
_RESULT_OVER: Final = 5
_RESULT_IN_PROGRESS: Final = 4

Address = tuple[str, int]


def get(address: Address, path: str) -> tuple[int, bytes]:
    """Status and body; status 0 if there was no answer."""
    status, _, body = ask(address, "GET", path)
    return status, body


def post(address: Address, path: str, body: bytes) -> bytes:
    """The reply, empty if there was none."""
    return ask(address, "POST", path, body)[2]


def ask(
    address: Address, method: str, path: str, body: bytes = b"", headers: str = "", cut_nbytes: int = 0
) -> tuple[int, bytes, bytes]:
    """Status, head and body; status 0 if there was no answer. ``cut_nbytes``: so much of the body's end is not sent."""
    received = b""
    lines = f"Host: {address[0]}:{address[1]}\r\nConnection: close\r\nContent-Length: {len(body)}\r\n{headers}"
    try:
        with socket.create_connection(address, PATIENCE_SECS) as connection:
            connection.sendall(f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + body[: len(body) - cut_nbytes])
            if cut_nbytes:
                return 0, b"", b""
            while data := connection.recv(65_536):
                received += data
    except OSError:
        return 0, b"", b""
    head, _, answer = received.partition(b"\r\n\r\n")
    status = head.split(b" ", 2)[1:2]
    return (int(status[0]) if status and status[0].isdigit() else 0), head, answer


@dataclass
class History:
    """When each kind of client was acknowledged something, and what else it saw."""

    acknowledged_at: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    seen: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    began_at: float = field(default_factory=time.monotonic)

    def note(self, kind: str) -> None:
        self.acknowledged_at[kind].append(time.monotonic())

    def longest_gaps_secs(self) -> dict[str, float]:
        """Of each kind of client, also the one before the first acknowledgement."""
        return {
            kind: max(after - before for before, after in pairwise([self.began_at, *sorted(times)]))
            for kind, times in self.acknowledged_at.items()
        }


@dataclass
class ManagedComputer:
    """A client of the account manager, whose projects each do a second of work between two reports."""

    member: fleet.Member
    acknowledged_secs: int = 0
    first_secs: int = 0
    """Of its first report, with which the site begins to count."""

    @property
    def token(self) -> str:
        return self.member.tail.partition(b"<host>")[2].partition(b"</host>")[0].decode()

    def act(self, address: Address, history: History) -> bool:
        message = self.member.request()
        nsecs = self.member.sent
        reply = post(address, "/rpc.php", message)
        is_done = b"</acct_mgr_reply>" in reply and b"<repeat_sec>" in reply and b"<error_num>" not in reply
        if is_done:
            self.acknowledged_secs = nsecs
            history.note("account manager")
        elif reply:
            history.seen["account manager"].add(_sentence(reply))
        return is_done

    def faults(self, session: psycopg.Connection[Any], *, is_frozen: bool) -> list[str]:
        """How the books differ from what was acknowledged: a total, and the sum of the days. If they are frozen, what
        was sent last may be in them although the answer was lost.
        """
        rows = session.execute(
            "SELECT p.project_id, p.credited[3], (SELECT sum(d.cpu_time) FROM accounting_day d"
            "   WHERE d.host_id = p.host_id AND d.project_id = p.project_id)"
            "  FROM accounting_hostproject p JOIN portal_host h ON h.id = p.host_id WHERE h.token = %s",
            [self.token],
        ).fetchall()
        least = (self.acknowledged_secs - self.first_secs) * MICRO
        most = (self.member.sent - self.first_secs) * MICRO if is_frozen else least
        totals = {int(total) for _, total, _ in rows} | {int(days or 0) for _, _, days in rows}
        if len(rows) == fleet.PROJECTS and len(totals) == 1 and least <= min(totals) <= most:
            return []
        return [f"computer {self.token}: acknowledged {least} µs, sent {most} µs, stored {rows}"]


@dataclass
class ProjectComputer:
    """A client of the project, which fetches jobs and reports each of them at its next request."""

    computer: Computer
    sent: dict[str, str] = field(default_factory=dict)
    reported: set[str] = field(default_factory=set)

    def act(self, address: Address, history: History, *, wants: bool = True) -> bool:
        computer = self.computer
        results = "".join(result_xml(name) for name in computer.jobs)
        reply = post(address, "/project/scheduler", computer.request(1000 if wants else 0, 1, results=results))
        text = reply.decode(errors="replace")
        if "</scheduler_reply>" not in text or "<project_is_down/>" in text:
            if text:
                history.seen["project"].add(_sentence(reply))
            return False
        history.note("project")
        self.sent |= dict.fromkeys(names(text, "result"), "")
        self.reported |= set(names(text, "result_ack"))
        computer.read(text)
        return True

    def faults(self, session: psycopg.Connection[Any], *, is_frozen: bool) -> list[str]:
        rows = session.execute(
            "SELECT name, server_state, host_id FROM credit_result WHERE name = ANY (%s)", [list(self.sent)]
        ).fetchall()
        stored = {name: (state, host_id) for name, state, host_id in rows}
        said = []
        for name in self.sent:
            state, host_id = stored.get(name, (None, None))
            wanted = _RESULT_OVER if name in self.reported else _RESULT_IN_PROGRESS
            is_right = state == wanted or (is_frozen and state == _RESULT_OVER)
            if not is_right or host_id != self.computer.hostid:
                said.append(f"job {name}: server state {state} at host {host_id}, acknowledged {wanted}")
        return said


def without_credit(session: psycopg.Connection[Any]) -> set[int]:
    """Workunits that have a quorum of successes and wait for validators and workers."""
    rows = session.execute(
        "SELECT w.id FROM credit_workunit w WHERE (SELECT count(*) FROM credit_result r"
        "  WHERE r.workunit_id = w.id AND r.outcome = 1) >= w.min_quorum AND NOT EXISTS (SELECT FROM credit_result r"
        "  WHERE r.workunit_id = w.id AND r.granted_credit > 0)"
    )
    return {id_ for (id_,) in rows}


def _sentence(reply: bytes) -> str:
    match = re.search(rb"<(?:error_msg|message)[^>]*>([^<]*)<", reply)
    return match[1].decode(errors="replace") if match else reply[:100].decode(errors="replace")


class Writer(Protocol):
    """Who writes by another way than a client's RPC."""

    def act(self, address: Address, history: History) -> bool: ...

    def faults(self, session: psycopg.Connection[Any], *, is_frozen: bool) -> list[str]: ...


class Traffic:
    """Clients and visitors that go on all the time, in threads; a context manager."""

    def __init__(
        self,
        address: Address,
        managed: list[ManagedComputer],
        project: list[ProjectComputer],
        writers: Sequence[Writer],
    ) -> None:
        self.address, self.managed, self.project, self.writers = address, managed, project, writers
        self.history = History()
        self._over = threading.Event()

    def begin(self) -> None:
        """Everybody's first contact. A busy machine may refuse some, before it has connections to the database."""
        for each in self.managed:
            wait_until(partial(each.act, self.address, self.history), "a first contact", PATIENCE_SECS)
            each.first_secs = each.member.sent
        for other in self.project:
            wait_until(partial(other.act, self.address, self.history), "a first contact", PATIENCE_SECS)

    def __enter__(self) -> Traffic:
        self._pool = ThreadPoolExecutor(4)
        works = (self._manage, self._manage, self._compute, self._visit)
        self._running = [self._pool.submit(work, number) for number, work in enumerate(works)]
        return self

    def __exit__(self, *_raised: object) -> None:
        self._over.set()
        for running in self._running:
            running.result()
        self._pool.shutdown()

    def _manage(self, number: int) -> None:
        mine, dice = self.managed[number::2], random.Random(number)
        self._repeat(lambda: dice.choice(mine).act(self.address, self.history))

    def _compute(self, number: int) -> None:
        dice = random.Random(number)
        self._repeat(lambda: dice.choice(self.project).act(self.address, self.history))

    def _visit(self, _number: int) -> None:
        writers = cycle(self.writers)

        def visit() -> None:
            status, _ = get(self.address, "/project/top/")
            if status == 200:
                self.history.note("pages")
            else:
                self.history.seen["pages"].add(str(status))
            next(writers).act(self.address, self.history)

        self._repeat(visit, 5 * PAUSE_SECS)

    def _repeat(self, act: Callable[[], object], pause_secs: float = PAUSE_SECS) -> None:
        while not self._over.wait(pause_secs):
            act()

    def end(self) -> None:
        """Everybody's last contact: each tries until it is acknowledged."""
        deadline = time.monotonic() + PATIENCE_SECS
        for act in (
            *(each.act for each in self.managed),
            *(lambda at, told, each=other: each.act(at, told, wants=False) for other in self.project),
            *(writer.act for writer in self.writers),
        ):
            while not act(self.address, self.history):
                assert time.monotonic() < deadline, f"nobody was answered: {dict(self.history.seen)}"
                # Only asking tells when the site answers again.
                time.sleep(PAUSE_SECS)

    def faults(self, session: psycopg.Connection[Any], *, is_frozen: bool = False) -> list[str]:
        """How what is stored differs from what was acknowledged, after the last contact; or before anybody's next one,
        which would heal what was lost of totals: then the books are frozen.
        """
        parts: list[ManagedComputer | ProjectComputer | Writer] = [*self.managed, *self.project, *self.writers]
        said = [fault for part in parts for fault in part.faults(session, is_frozen=is_frozen)]
        sent = [name for each in self.project for name in each.sent]
        return said + [f"job {name} was sent to several computers" for name in {n for n in sent if sent.count(n) > 1}]
