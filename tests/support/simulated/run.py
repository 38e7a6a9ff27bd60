"""One run: some computers, two web processes and a database, with seeded faults; then a calm, in which all must work.

The use cases, the application and the batcher are the site's own. The database (`tests.support.simulated.server`),
threads and the clock are simulated, so a run depends on its seed alone.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import datetime as dt
import random
import sys
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.utils import timezone

from accounting.engine.addresses import address_key
from accounting.engine.choice.facts import ProjectFacts
from accounting.ledger import partitions
from accounting.rpc import catalogue as projects
from credit.engine.rules import Rules
from portal.clients import request_handler
from portal.clients.application import ClientApplication
from portal.clients.database import batching, timed_cache
from portal.clients.paths import ClientPath
from portal.people.accounts import ClientAuthError
from scheduler.engine.facts import AppFacts, Version
from scheduler.programs import catalogue as programs
from scheduler.ready_jobs import job_cache, ready_queue
from scheduler.rpc import answer as scheduler_answer
from scheduler.rpc import identify
from scheduler.wire.replies import VersionRefs
from tests.support.simulated import clients
from tests.support.simulated.clients import URLS, Computer
from tests.support.simulated.ledger_sql import Ledger
from tests.support.simulated.queue_sql import Queue
from tests.support.simulated.server import FakeBatchConnection, FakePool, Server, fetch
from tests.support.simulated.store import Store, Transaction
from tests.support.simulated.virtual_time import VirtualLoop, run

BEGAN = dt.datetime(2026, 11, 20, 9, tzinfo=dt.UTC)
REPORT, ASK = "/rpc.php", "/project/scheduler"
CALM_SECS = 300.0
ANSWER_SECS = 60.0
HURRIED_SECS = (0.01, 0.1, 1.0)
# What a client is told that has met with others again and again
CONFLICTS = (b"several requests at the same time", b"record keeps changing")
NWORKERS = 2
# How a request comes to its end on the client's side
WHOLE, CUT, SLOW, IMPATIENT, TWICE = "whole", "cut off", "slow", "impatient", "twice at once"
WAYS = (WHOLE,) * 12 + (CUT, SLOW, IMPATIENT, IMPATIENT, TWICE)


@dataclass(frozen=True)
class Plan:
    """``kills``: of web processes, at most. ``stalls``: whether answers of the database may take longer than clients
    are kept waiting. ``hurries``: requests are given up after fractions of a second. ``guards`` False leaves out the
    database's own guards, which must be noticed.
    """

    seed: int
    ncomputers: int = 5
    nreports: int = 4
    fault_rate: float = 0.12
    kills: int = 2
    stalls: bool = True
    hurries: bool = False
    guards: bool = True
    # Of the schedule alone: another one of these changes no result
    order: int = 0


@dataclass
class Outcome:
    """``wrong``: all that was false. ``books``: what is stored of each computer. ``nfaults``: of the database."""

    wrong: list[str]
    books: dict[Any, Any]
    nfaults: int
    nconfirmed: int
    nrefused: int
    # What the server was sent, and when: two runs of one plan have the same
    trace: tuple[Any, ...]


class _Threads:
    """The batcher's threads: what they do takes some time, and nothing else happens while they do it."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def submit(self, function: Callable[..., Any], *args: Any) -> concurrent.futures.Future[Any]:
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        asyncio.get_running_loop().call_later(self._rng.choice((0.0, 0.001, 0.1)), self._do, future, function, args)
        return future

    @staticmethod
    def _do(future: concurrent.futures.Future[Any], function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(function(*args))
            except Exception as error:
                # Of any kind, as an executor does.
                future.set_exception(error)

    def shutdown(self, **_options: Any) -> None:
        pass


_caches: contextvars.ContextVar[dict[int, Any]] = contextvars.ContextVar("caches")


class _OwnCaches(MutableMapping[int, Any]):
    """The job caches of the process that is at work: here all of them share one."""

    def __getitem__(self, app_id: int) -> Any:
        return _caches.get()[app_id]

    def __setitem__(self, app_id: int, cache: Any) -> None:
        _caches.get()[app_id] = cache

    def __delitem__(self, app_id: int) -> None:
        del _caches.get()[app_id]

    def __iter__(self) -> Iterator[int]:
        return iter(_caches.get())

    def __len__(self) -> int:
        return len(_caches.get())


@dataclass
class _Worker:
    """A web process."""

    server: Server
    answer_secs: float
    batcher: batching.Batcher = field(init=False)
    application: ClientApplication = field(init=False)
    caches: dict[int, Any] = field(default_factory=dict)
    pools: list[FakePool] = field(default_factory=list)
    requests: dict[asyncio.Task[None], None] = field(default_factory=dict)
    is_dead: bool = False

    def __post_init__(self) -> None:
        worker = self

        class SimulatedBatcher(batching.Batcher):
            def _make_pool(self, size: int) -> Any:
                worker.pools.append(FakePool(worker.server, size))
                return worker.pools[-1]

        self.batcher = SimulatedBatcher({})
        threads: Any = _Threads(self.server.rng)  # as much of an executor as the batcher uses
        self.batcher._threads = threads
        paths: dict[str, ClientPath] = {path: settings.CLIENT_PATHS[path] for path in (REPORT, ASK)}
        self.application = ClientApplication(
            paths,
            self.batcher,
            None,
            is_behind_proxy=False,
            body_secs=20.0,
            answer_secs=self.answer_secs,
            most_per_address=50,
        )

    def queues(self) -> list[Any]:
        return [self.batcher._reads, self.batcher._writes]

    async def kill(self) -> None:
        """It dies; the server goes on with what it was sent."""
        self.is_dead = True
        tasks = [*self.requests, *(task for queue in self.queues() for task in sorted(queue._tasks, key=_number))]
        tasks += [task for task in (*self.batcher._shared.values(), self.batcher._checking) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for pool in self.pools:
            await pool.close()

    def leaks(self) -> Iterator[str]:
        """What a process without requests must not have."""
        for queue in self.queues():
            if queue._waiting or queue._tasks or queue._nfree != 1:
                yield f"queue: {len(queue._waiting)} wait, {len(queue._tasks)} tasks, {queue._nfree} free"
        nkept = sum(len(queue._kept) for queue in self.queues())
        if [pool.nused for pool in self.pools] != [nkept, 0]:
            yield f"connections that are out: {[pool.nused for pool in self.pools]}, {nkept} kept"
        if self.batcher._held or self.batcher._shared:
            yield f"held: {self.batcher._held}, shared: {self.batcher._shared}"
        free = self.batcher._calls._value
        if free != batching.MAX_CALLS:
            yield f"{batching.MAX_CALLS - free} calls are still counted"
        application = self.application
        if application._nunder_way or application._memory.kept or application._addresses._under_way:
            yield "the application still counts requests"
        for cache in self.caches.values():
            for queue in cache.queues.values():
                if queue._taken:
                    yield f"jobs taken and neither sent nor put back: {sorted(queue._taken)}"


def _number(task: asyncio.Task[None]) -> int:
    """Tasks are numbered as they are made."""
    return int(task.get_name().rpartition("-")[2])


class _Quiet:
    """In place of the log: a use case may only fail as the database does."""

    def __init__(self) -> None:
        self.wrong: list[str] = []

    def warning(self, *_: object, **__: object) -> None:
        pass

    info = warning

    def exception(self, *_: object, **__: object) -> None:
        error = sys.exception()
        if not isinstance(error, psycopg.Error):
            self.wrong.append(f"a use case failed: {error!r}")


class Simulation:
    """See the module. One object, one run."""

    def __init__(self, plan: Plan, patch: pytest.MonkeyPatch) -> None:
        self._plan = plan
        self._rng = random.Random(f"{plan.seed}/{plan.order}")
        self._loop = VirtualLoop()
        self._wrong: list[str] = []
        self._nconfirmed = self._nrefused = 0
        self._quiet = _Quiet()
        self._store = Store()
        self._computers = clients.make_computers(random.Random(plan.seed), plan.ncomputers)
        clients.fill(self._store, self._computers, int(BEGAN.timestamp() * 1e6), self._now())
        self._ledger = Ledger(self._rng, guards=plan.guards)
        self._queue = Queue(self._rng, self._now, guards=plan.guards)
        self._server = Server(self._store, self._handle, self._rng, plan.fault_rate, stalls=plan.stalls)
        self._patch(patch)

    def _now(self) -> dt.datetime:
        return BEGAN + dt.timedelta(seconds=self._loop.time())

    async def _handle(self, transaction: Transaction, step: Any) -> list[Any]:
        rooms = self._ledger if self._ledger.handles(step) else self._queue
        return await rooms.handle(transaction, step)

    def _patch(self, patch: pytest.MonkeyPatch) -> None:
        clock = SimpleNamespace(monotonic=self._loop.time)
        patch.setattr(batching, "BatchConnection", FakeBatchConnection)
        patch.setattr(batching, "fetch", fetch)
        patch.setattr(timezone, "now", self._now)
        patch.setattr(timed_cache, "time", clock)
        patch.setattr(ready_queue, "time", clock)
        patch.setattr(job_cache, "_caches", _OwnCaches())
        patch.setattr(request_handler, "log", self._quiet)
        patch.setattr(request_handler, "record", lambda *_, **__: None)
        patch.setattr(partitions, "_known_months", {BEGAN.date().replace(day=1)})
        patch.setattr(identify, "enrol", self._refuse_copy)
        patch.setattr(projects.cache, "_load", _projects)
        patch.setattr(programs.cache, "_load", lambda: _programs(self._loop.time()))
        for cache in (projects.cache, programs.cache):
            patch.setattr(cache, "_kept", None)
            patch.setattr(cache, "_being_renewed", None)
        scheduler_answer._DRAW.seed(self._rng.random())

    def _refuse_copy(self, *_: object) -> int:
        self._wrong.append("a computer was taken for a copy of itself")
        raise ClientAuthError(-1, "a copy")

    def run(self) -> Outcome:
        try:
            run(self._live(), self._loop)
        except AssertionError as stuck:
            self._wrong.append(str(stuck))
        wrong = [*self._wrong, *self._quiet.wrong, *self._loop.faults]
        books = {key: [row["credited"], row["reported"]] for key, row in self._store.tables["project"].items()}
        return Outcome(wrong, books, self._server.nfaults, self._nconfirmed, self._nrefused, tuple(self._server.trace))

    async def _live(self) -> None:
        self._workers = [self._worker() for _ in range(NWORKERS)]
        work = [asyncio.ensure_future(self._report_for_a_while(computer)) for computer in self._computers]
        work += [asyncio.ensure_future(self._ask_for_a_while(computer)) for computer in self._computers]
        for _ in range(self._rng.randint(0, self._plan.kills)):
            await asyncio.sleep(self._rng.uniform(0.01, 30))
            await self._kill_one()
        await asyncio.gather(*work)
        self._server.fault_rate = 0.0
        await asyncio.sleep(CALM_SECS)
        self._look_for_leaks("after the faults")
        await self._calm()
        self._look_for_leaks("at the end")
        self._wrong += clients.wrong_at_end(self._computers, self._store)
        for worker in self._workers:
            await worker.batcher.close()

    def _worker(self) -> _Worker:
        return _Worker(self._server, self._rng.choice(HURRIED_SECS) if self._plan.hurries else ANSWER_SECS)

    async def _kill_one(self) -> None:
        number = self._rng.randrange(NWORKERS)
        dead, self._workers[number] = self._workers[number], self._worker()
        await dead.kill()

    def _look_for_leaks(self, when: str) -> None:
        for worker in self._workers:
            self._wrong += [f"{when}: {leak}" for leak in worker.leaks()]
        if self._store.transactions or self._store.locks:
            self._wrong.append(f"{when}: {len(self._store.transactions)} transactions are open")

    async def _report_for_a_while(self, computer: Computer) -> None:
        rng = random.Random(f"{self._plan.seed}/{computer.id}")
        for _ in range(self._plan.nreports):
            computer.secs += rng.randint(1, 30)
            for _ in range(self._rng.randint(1, 4)):
                if await self._report(computer, self._rng.choice(WAYS)):
                    break
                await asyncio.sleep(self._rng.choice((0.0, 0.5, 5.0)))
            await asyncio.sleep(self._rng.choice((0.0, 0.0, 0.01, 3.0)))

    async def _ask_for_a_while(self, computer: Computer) -> None:
        for _ in range(self._plan.nreports):
            await self._ask(computer, self._rng.randint(0, 3))
            await asyncio.sleep(self._rng.choice((0.0, 0.0, 0.01, 5.0)))

    async def _calm(self) -> None:
        """No faults: each computer is answered at once, and together with the others."""
        for worker in self._workers:
            worker.application._answer_secs = ANSWER_SECS
        napart = [self._server.napart]
        for _ in range(2):
            for computer in self._computers:
                computer.secs += 1
            done = await asyncio.gather(
                *[
                    self._report(each, WHOLE, self._workers[number % NWORKERS])
                    for number, each in enumerate(self._computers)
                ]
            )
            if not all(done):
                self._wrong.append("not all reports were confirmed, and nothing was wrong with the database")
            napart.append(self._server.napart)
        # At first connections are found to be lost.
        if napart[-1] > napart[-2]:
            self._wrong.append("queries were done by themselves, and nothing was wrong")
        for _ in range(3):
            if not all(await asyncio.gather(*[self._ask(computer, 0) for computer in self._computers])):
                self._wrong.append("not all requests for work were answered, and nothing was wrong with the database")

    async def _report(self, computer: Computer, way: str, worker: _Worker | None = None) -> bool:
        secs, body = computer.secs, computer.report()
        if way == TWICE:
            replies = await asyncio.gather(*[self._exchange(REPORT, body, WHOLE) for _ in range(2)])
        else:
            replies = [await self._exchange(REPORT, body, way, worker)]
        confirmed = [reply for reply in replies if reply is not None and clients.is_confirmed(reply)]
        for reply in confirmed:
            self._wrong += clients.wrong_after_report(computer, secs, reply, self._store)
        self._nconfirmed += len(confirmed)
        self._nrefused += len(replies) - len(confirmed)
        return bool(confirmed)

    async def _ask(self, computer: Computer, njobs: int) -> bool:
        computer.tasks.seqno += 1
        reply = await self._exchange(ASK, computer.ask(njobs), WHOLE)
        text = reply.decode() if reply is not None else ""
        if not clients.is_scheduler_answer(text):
            self._nrefused += 1
            return False
        self._nconfirmed += 1
        self._wrong += clients.wrong_after_ask(computer, text, self._store)
        computer.tasks.read(text)
        return True

    async def _exchange(self, path: str, body: bytes, way: str, worker: _Worker | None = None) -> bytes | None:
        """A request and its reply; None if none came to the client."""
        worker = worker or self._rng.choice(self._workers)
        sent: list[Any] = []
        task = asyncio.get_running_loop().create_task(self._serve(worker, path, body, way, sent))
        worker.requests[task] = None
        task.add_done_callback(worker.requests.pop)
        if way == IMPATIENT:
            await asyncio.wait([task], timeout=self._rng.choice((0.001, 0.01, 1.0)))
            if not task.done():
                return None
        else:
            await asyncio.wait([task])
        if task.cancelled():
            if not worker.is_dead:
                self._wrong.append("a request was cancelled with another one")
            return None
        if (error := task.exception()) is not None:
            self._wrong.append(f"a request ended with {error!r}")
            return None
        return self._content(sent)

    def _content(self, sent: list[Any]) -> bytes | None:
        """The reply's body, if it came whole and once."""
        kinds = [message["type"] for message in sent]
        if kinds != ["http.response.start", "http.response.body"]:
            self._wrong.append(f"a request was answered with {kinds}")
            return None
        content: bytes = sent[1]["body"]
        if any(sentence in content for sentence in CONFLICTS):
            self._wrong.append(f"a client was told: {content[:200]!r}")
        return content if sent[0]["status"] == 200 else None

    async def _serve(self, worker: _Worker, path: str, body: bytes, way: str, sent: list[Any]) -> None:
        _caches.set(worker.caches)
        half = len(body) // 2
        parts = [body[:half], body[half:]]

        async def receive() -> dict[str, Any]:
            if way == SLOW:
                await asyncio.sleep(self._rng.choice((1.0, 60.0)))
            if way == CUT and len(parts) == 1:
                return {"type": "http.disconnect"}
            part = parts.pop(0) if parts else b""
            return {"type": "http.request", "body": part, "more_body": bool(parts)}

        async def send(message: MutableMapping[str, Any]) -> None:
            sent.append(message)

        headers = [(b"content-length", b"%d" % len(body)), (b"user-agent", b"BOINC client")]
        began = self._loop.time()
        scope: Any = {"type": "http", "path": path, "method": "POST", "query_string": b"", "headers": headers}
        await worker.application({**scope, "client": ("203.0.113.7", 1)}, receive, send)
        if not self._plan.stalls and way != SLOW and self._loop.time() - began >= ANSWER_SECS:
            self._wrong.append("a request was answered only when its time was over")


def _projects() -> projects.Catalogue:
    made = [
        projects.CatalogueProject(
            number,
            f"Project {number}",
            url,
            "00",
            address_key(url),
            ProjectFacts(
                id=number,
                share=100.0,
                is_active=True,
                is_down=False,
                keywords={},
                versions=frozenset({("x86_64-pc-linux-gnu", "CPU")}),
                boosts=(1.0, 1.0),
                troubles=(),
            ),
            per_user=False,
            shared_account_key=f"{number}_77aa6d2754819a30f128656675a452bb",
        )
        for number, url in enumerate(URLS, 1)
    ]
    return projects.Catalogue({each.id: each for each in made}, (), ())


def _programs(read_at: float) -> programs.Catalogue:
    version = Version(1, 1, "x86_64-pc-linux-gnu", 100, "", "CPU", 1.0, 0.0)
    app = AppFacts(
        1, "app", 1.0, 1000, Rules.published(), typical_fpops=4e10, first_place=1, last_place=10_000, first_rank=0
    )
    return programs.Catalogue(
        apps={1: app},
        versions={1: version},
        versions_by_app={1: [version]},
        app_names={1: "app"},
        app_xml={1: "<app><name>app</name></app>\n"},
        version_files={1: VersionRefs("", "")},
        version_xml={1: ""},
        read_at=read_at,
    )


@contextmanager
def simulated(plan: Plan) -> Iterator[Simulation]:
    with pytest.MonkeyPatch.context() as patch:
        yield Simulation(plan, patch)


def outcome(plan: Plan) -> Outcome:
    with simulated(plan) as made:
        return made.run()
