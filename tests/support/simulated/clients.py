"""BOINC clients of the simulated site: what they send, what they were told, and what must then be stored."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from accounting.engine.amounts import FLOPS_PER_CREDIT, MICRO
from credit.engine.states import ServerState
from portal.wire import credentials
from tests.support import scheduler_clients
from tests.support.am_requests import HOST_INFO, SentProject, SentRequest
from tests.support.simulated.store import Store

P_FPOPS = 4_000_000_000
CREDIT_PER_SEC = P_FPOPS / FLOPS_PER_CREDIT
URLS = ("http://one.example.org/", "http://two.example.org/")
NJOBS = 40
ENOUGH = 10**13


@dataclass
class Computer:
    """A computer that is attached to the account manager and to the project. ``secs``: of work at each project."""

    id: int
    owner: int
    key: str
    token: str
    secs: int = 0
    acknowledged: int = 0
    tasks: scheduler_clients.Computer = field(init=False)

    def __post_init__(self) -> None:
        self.tasks = scheduler_clients.Computer(
            self.key, hostid=self.id, seqno=1, ncpus=8, cpid=self.cpid, name=f"host{self.id}", p_fpops=P_FPOPS
        )

    @property
    def cpid(self) -> str:
        return f"{self.id:032x}"

    def report(self) -> bytes:
        """The account-manager request."""
        totals = (self.secs * CREDIT_PER_SEC, 0.0, float(self.secs), 0.0, self.secs // 10, 0)
        return SentRequest(
            [SentProject(url, totals=totals, hostid=17) for url in URLS],
            authenticator=self.key.encode(),
            host_cpid=self.cpid,
            opaque=f"<host>{self.token}</host>".encode(),
            host_info=HOST_INFO.replace(b"00000000000000000000000000000a01", self.cpid.encode()),
            now=1_795_000_000.0 + self.secs,
        ).printed()

    def ask(self, njobs: int) -> bytes:
        """The scheduler request: all jobs that it has are done and reported; this many idle processors want more."""
        results = "".join(scheduler_clients.result_xml(name) for name in self.tasks.jobs)
        return self.tasks.request(10.0 * njobs, njobs, results=results)


def make_computers(rng: random.Random, number: int) -> list[Computer]:
    """Each two of them belong to one person."""
    return [
        Computer(100 + n, 1 + n // 2, f"{rng.getrandbits(128):032x}", f"{rng.getrandbits(128):032x}")
        for n in range(number)
    ]


def fill(store: Store, computers: list[Computer], now_us: int, key_used_at: object) -> None:
    """The computers' rows, as after an attach to both projects, and a queue of jobs, some with two copies."""
    for computer in computers:
        store.serial += 1
        key_hash = credentials.key_hash(computer.key).hex()
        store.add("key", key_hash, id=computer.id, user=computer.owner, used_at=key_used_at)
        store.add(
            "host", computer.id, owner=computer.owner, token=computer.token, version=store.serial, ncpus=8,
            p_fpops=P_FPOPS, coprocs=[], hardware_digest="", platform_name="", host_cpid=computer.cpid,
        )  # fmt: skip
        store.add(
            "ledger", computer.id, contacts=0, last_at_us=now_us - 10**11, client_now=None, level=[ENOUGH] * 5,
            answer_digest="", answers_logged=0, same_answers=0,
        )  # fmt: skip
        for project in range(1, len(URLS) + 1):
            nothing = [0] * 6
            store.add(
                "project", (computer.id, project), reported=nothing, earlier=[], handed=nothing, credited=nothing,
                pending=nothing, dropped=nothing, listed=True, restart=None, broken=[], state={},
            )  # fmt: skip
    for number in range(NJOBS):
        workunit = 1000 + number // (1 if number < NJOBS // 2 else 2)
        store.add(
            "workunit", workunit, app_id=1, name=f"work{workunit}", fpops_est=4e10, fpops_bound=4e12,
            memory_bytes=1_000_000, disk_bytes=1_000_000, delay_bound_secs=86_400, min_quorum=2,
        )  # fmt: skip
        store.add(
            "result", 5000 + number, workunit_id=workunit, name=f"work{workunit}_{number}", host_id=None, user_id=None,
            server_state=ServerState.UNSENT, outcome=0, validate_state=0, app_version_id=None, processor_type="CPU",
            peak_flops=None, projected_flops=None, sent_at=None, deadline_at=None, nsent=0, ntaken=0,
        )  # fmt: skip


def is_confirmed(reply: bytes) -> bool:
    return b"<repeat_sec>" in reply and b"<error_num>" not in reply


def wrong_after_report(computer: Computer, secs: int, reply: bytes, store: Store) -> Iterator[str]:
    """What is false of a confirmed report of this many seconds."""
    if f"<host>{computer.token}</host>".encode() not in reply:
        yield f"computer {computer.id} got another one's reply"
    for project in range(1, len(URLS) + 1):
        stored = store.tables["project"][computer.id, project]["reported"][2]
        if stored < secs * MICRO:
            yield f"computer {computer.id}: {secs} s are confirmed, {stored / MICRO:g} s are stored"


def wrong_after_ask(computer: Computer, reply: str, store: Store) -> Iterator[str]:
    """What is false of a scheduler reply: a job is this computer's before it is told, and over before it is acked."""
    if scheduler_clients.value(reply, "hostid") != str(computer.id) if "<hostid>" in reply else False:
        yield f"computer {computer.id} was given another number"
    results = {row["name"]: row for row in store.tables["result"].values()}
    for name in scheduler_clients.names(reply, "result"):
        if results[name]["host_id"] != computer.id:
            yield f"job {name} was sent to computer {computer.id}, and is stored for {results[name]['host_id']}"
    for name in scheduler_clients.names(reply, "result_ack"):
        if results[name]["server_state"] != ServerState.OVER:
            yield f"job {name} is acknowledged, and not over"


def is_scheduler_answer(reply: str) -> bool:
    return "<project_is_down/>" not in reply and re.search(r"<request_delay>", reply) is not None


def wrong_at_end(computers: list[Computer], store: Store) -> Iterator[str]:
    """What is false once each computer has reported all that it has done."""
    for computer in computers:
        for project in range(1, len(URLS) + 1):
            row = store.tables["project"][computer.id, project]
            days = [
                amounts["amounts"]
                for (_, _, id_, host_id), amounts in store.tables.get("day", {}).items()
                if (host_id, id_) == (computer.id, project)
            ]
            sums = [sum(column) for column in zip(*days, strict=True)] if days else [0] * 6
            if row["credited"] != sums:
                yield f"computer {computer.id}: {row['credited']} credited, and {sums} on its days"
            if row["credited"][2] != computer.secs * MICRO or row["reported"][2] != computer.secs * MICRO:
                credited_secs = row["credited"][2] / MICRO
                yield f"computer {computer.id}: {computer.secs} s were done, {credited_secs:g} s are credited"
            if row["credited"][4] != computer.secs // 10:
                yield f"computer {computer.id}: {row['credited'][4]} jobs are credited, not {computer.secs // 10}"
    takers: dict[int, list[int]] = {}
    for row in store.tables["result"].values():
        if row["nsent"] > 1 or row["ntaken"] > 1:
            yield f"job {row['name']} was sent {row['nsent']} times, and taken {row['ntaken']} times"
        if row["server_state"] == ServerState.IN_PROGRESS:
            yield f"job {row['name']} was sent, and its computer {row['host_id']} does not have it"
        if row["user_id"] is not None:
            takers.setdefault(row["workunit_id"], []).append(row["user_id"])
    for workunit, users in takers.items():
        if len(users) != len(set(users)):
            yield f"one person has several copies of workunit {workunit}"
