"""A BOINC client as the scheduler sees it: requests as the real one writes them, and what it reads in a reply."""

from __future__ import annotations

import asyncio
import datetime as dt
import itertools
import os
import random
import re
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.db import connections
from django.test import Client
from django.utils import timezone

from portal.clients import sync_driver
from portal.clients.database.batching import Batcher
from portal.clients.effects import Steps
from portal.clients.factory import connection_params
from portal.models import ClientKey, User
from portal.people.accounts import issue_client_key
from scheduler.files.certificates import size_key
from scheduler.programs import catalogue
from scheduler.ready_jobs import job_cache
from scheduler.rpc import answer as rpc_answer
from scheduler.wire.requests import parse_request
from tests.support.wait import join

CAPTURES = Path(__file__).parents[1] / "data" / "protocol"
ADDRESS = "/project/scheduler"
_numbers = itertools.count(1)


def captured(name: str) -> bytes:
    return (CAPTURES / f"sched_request_{name}.xml").read_bytes()


def key_of(user: User) -> str:
    return issue_client_key(user, ClientKey.Origin.LOOKUP)


def post(body: bytes) -> str:
    """The reply of the site, through all its layers."""
    reply = Client().post(ADDRESS, body, content_type="application/x-www-form-urlencoded")
    assert reply.status_code == 200
    return reply.content.decode()


def names(reply: str, element: str) -> list[str]:
    """The <name> of each such element."""
    return re.findall(rf"<{element}>\s*<name>([^<]*)</name>", reply)


def value(reply: str, element: str) -> str:
    match = re.search(rf"<{element}>([^<]*)</{element}>", reply)
    assert match is not None, f"no <{element}> in {reply}"
    return match[1].strip()


def messages(reply: str) -> list[str]:
    return re.findall(r"<message priority=\"\w+\">([^<]*)</message>", reply)


def result_xml(name: str, **fields: Any) -> str:
    """A reported job; ``files``: names to MD5s, or to (MD5, error). Their addresses have keys as clients got them."""
    files, keys = fields.pop("files", {}), fields.pop("keys", size_key)
    said = {"final_cpu_time": 0, "final_elapsed_time": 25.0, "exit_status": 0, "state": 5, **fields}
    lines = [f"<name>{name}</name>"] + [f"<{key}>{text}</{key}>" for key, text in said.items()]
    for file, md5 in files.items():
        error = ""
        if isinstance(md5, tuple):
            md5, error = md5[0], f"<error_msg>{md5[1]}</error_msg>"
        lines.append(
            f"<file_info><name>{file}</name><nbytes>17</nbytes><md5_cksum>{md5}</md5_cksum>{error}"
            f"<upload_url>http://127.0.0.1/project/file_upload_handler?{keys(file)}</upload_url></file_info>"
        )
    return "<result>\n" + "\n".join(lines) + "\n</result>\n"


@dataclass
class Computer:
    """A computer with a client on it. ``jobs``: what it has, in the order it came."""

    key: str
    hostid: int = 0
    seqno: int = 0
    ncpus: int = 4
    p_fpops: float = 4e9
    m_nbytes: float = 16e9
    share_nbytes: float = 10e9
    cpid: str = field(default_factory=lambda: f"{next(_numbers):032x}")
    name: str = ""
    platform: str = "x86_64-pc-linux-gnu"
    coprocs: str = ""
    extra: str = ""
    # Further elements of the computer's description
    hardware: str = ""
    features: str = "fpu sse2 avx2"
    os_name: str = "Linux Debian"
    # Where its requests come from
    address: str = ""
    jobs: list[str] = field(default_factory=list)

    def request(
        self,
        secs: float = 0,
        instances: float = 0,
        *,
        delay_secs: float = 0,
        results: str = "",
        extra: str = "",
        others: list[str] | None = None,
        **fields: Any,
    ) -> bytes:
        said = {
            "authenticator": self.key,
            "hostid": self.hostid,
            "rpc_seqno": self.seqno,
            "core_client_major_version": 7,
            "core_client_minor_version": 20,
            "core_client_release": 5,
            "work_req_seconds": secs,
            "cpu_req_secs": secs,
            "cpu_req_instances": instances,
            "estimated_delay": delay_secs,
            "platform_name": self.platform,
            **fields,
        }
        head = "".join(f"    <{key}>{text}</{key}>\n" for key, text in said.items() if text is not None)
        reported = set(re.findall(r"<result>\s*<name>([^<]*)</name>", results))
        here = [name for name in self.jobs if name not in reported] if others is None else others
        other = "".join(f"<other_result>\n<name>{name}</name>\n</other_result>\n" for name in here)
        return f"""<scheduler_request>
{head}<host_info>
    <timezone>0</timezone>
    <domain_name>{self.name or self.cpid}</domain_name>
    <host_cpid>{self.cpid}</host_cpid>
    <p_ncpus>{self.ncpus}</p_ncpus>
    <p_vendor>GenuineIntel</p_vendor>
    <p_model>Test CPU</p_model>
    <p_features>{self.features}</p_features>
    <p_fpops>{self.p_fpops:.6f}</p_fpops>
    <p_iops>{self.p_fpops:.6f}</p_iops>
    <m_nbytes>{self.m_nbytes:.6f}</m_nbytes>
    <d_total>1e12</d_total>
    <d_free>5e11</d_free>
    <os_name>{self.os_name}</os_name>
{self.hardware}</host_info>
<disk_usage>
    <d_boinc_used_project>0.000000</d_boinc_used_project>
    <d_project_share>{self.share_nbytes:.6f}</d_project_share>
</disk_usage>
<coprocs>
{self.coprocs}</coprocs>
{self.extra}{extra}{results}<other_results>
{other}</other_results>
</scheduler_request>
""".encode()

    def ask(self, *args: Any, **kwargs: Any) -> str:
        """Send a request past HTTP, and take note of what the reply says."""
        return sync_driver.run(self.asks(*args, **kwargs))

    async def asks(
        self, *args: Any, now: dt.datetime | None = None, draw: random.Random | None = None, **kwargs: Any
    ) -> str:
        """The same as a use case, for either driver."""
        request = parse_request(self.request(*args, **kwargs))
        request.address = self.address
        steps = rpc_answer.answer(request, now=now or timezone.now(), draw=draw or random.Random(1))
        reply = (await steps).decode()
        self.read(reply)
        return reply

    def read(self, reply: str) -> None:
        self.seqno += 1
        if "<hostid>" in reply:
            self.hostid = int(value(reply, "hostid"))
            self.seqno = 0
        for name in names(reply, "result"):
            if name not in self.jobs:
                self.jobs.append(name)
        gone = set(names(reply, "result_ack")) | set(names(reply, "result_abort"))
        self.jobs = [name for name in self.jobs if name not in gone]


def gpu(kind: str = "coproc_cuda", count: int = 1, secs: float = 0, instances: float = 0, **fields: Any) -> str:
    said = {
        "count": count,
        "name": "Test GPU",
        "req_secs": secs,
        "req_instances": instances,
        "estimated_delay": 0,
        "peak_flops": 1e13,
        "totalGlobalMem": 8e9,
        "drvVersion": 53504,
        "major": 8,
        "minor": 6,
        **fields,
    }
    return f"<{kind}>\n" + "".join(f"   <{key}>{text}</{key}>\n" for key, text in said.items()) + f"</{kind}>\n"


def computer_of(user: User, **fields: Any) -> Computer:
    """A computer with a key of this person's; what the scheduler knows of apps is read again."""
    catalogue.forget()
    return Computer(key_of(user), **fields)


def at_once(*cases: Steps[Any]) -> list[Any]:
    """What these use cases return or raise if the event loop begins all of them at the same time."""

    async def run() -> list[Any]:
        batcher = Batcher(connection_params(), connections.close_all)
        try:
            return await asyncio.gather(*map(batcher.run, cases), return_exceptions=True)
        finally:
            await batcher.close()

    # Django's ORM, which would hold up the loop, is then refused there. Several threads may do this at once.
    with suppress(KeyError):
        del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]
    try:
        return asyncio.run(run())
    finally:
        os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"


def one_by_one(*cases: Steps[Any]) -> list[Any]:
    """The same, one after the other."""
    return [sync_driver.run(case) for case in cases]


def known_apps() -> catalogue.Catalogue:
    """What the scheduler knows of apps just now."""
    return sync_driver.run(catalogue.fresh())


def fill_ready_jobs() -> None:
    sync_driver.run(job_cache.fill(known_apps()))


def elsewhere(work: Callable[[], object]) -> None:
    """In a thread with a connection, and so a transaction, of its own."""

    def run() -> None:
        try:
            work()
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    join(thread)
