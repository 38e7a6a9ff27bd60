"""A BOINC client as the account manager sees it: its reports, and its reaction to replies.

For demo data, tests and measurements. It attaches and detaches as told, and prints requests like a real client (BOINC
protocol, account manager RPC). It counts work from zero or, like newer versions, from the totals of the reply.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import unescape
from typing import Final

from accounting.engine.amounts import FLOPS_PER_CREDIT, KINDS, MICRO, format_micro
from portal.wire.credentials import client_password_hash

# The first version that starts its counters from the totals in the reply.
STARTS_FROM_HANDED: Final = (8, 3)
_ACCOUNT = re.compile(r"<account>(.*?)</account>", re.DOTALL)
_OPAQUE = re.compile(r"<opaque>(.*?)</opaque>", re.DOTALL)
_AUTHENTICATOR = re.compile(r"</name>\s*<authenticator>([^<]*)</authenticator>")
_ELEMENT = re.compile(r"<(\w+)>([^<]*)</\1>|<(\w+)/>")


@dataclass(frozen=True, slots=True)
class Device:
    """GPUs of one kind in a computer."""

    type: str
    name: str
    count: int
    peak_flops: int
    ram_bytes: int = 8 << 30


@dataclass(slots=True)
class Attachment:
    """A project that the client is attached to: its totals in the order of KINDS, in micro-units and jobs."""

    url: str
    name: str = ""
    account_key: str = ""
    share: float = 100.0
    managed: bool = True
    hostid: int = 1
    totals: list[int] = field(default_factory=lambda: [0] * 6)
    no_work: tuple[str, ...] = ()

    def work(
        self, computer: SimulatedComputer, cpu_secs: float, gpu_secs: float, jobs: tuple[int, int] = (0, 0)
    ) -> None:
        """Add processor time, the estimated credit that the client counts for it, and finished jobs."""
        work = (*computer.credit_micro(cpu_secs, gpu_secs), int(cpu_secs * MICRO), int(gpu_secs * MICRO), *jobs)
        self.totals = [total + more for total, more in zip(self.totals, work, strict=True)]


@dataclass(slots=True)
class Task:
    """A task. ``state``: of the result; ``process``: the state of its process and the scheduler's, if it was begun."""

    url: str
    name: str
    deadline_secs: float
    state: int = 2
    process: tuple[int, int] | None = None
    fraction_done: float = 0.0
    remaining_secs: float = 3600.0
    elapsed_secs: float = 0.0

    def printed(self) -> str:
        process = ""
        if self.process is not None:
            process = (
                f"<active_task>\n    <active_task_state>{self.process[0]}</active_task_state>\n"
                f"    <scheduler_state>{self.process[1]}</scheduler_state>\n"
                f"    <fraction_done>{self.fraction_done:.6f}</fraction_done>\n"
                f"    <elapsed_time>{self.elapsed_secs:.6f}</elapsed_time>\n</active_task>\n"
            )
        return (
            f"<result>\n    <name>{self.name}</name>\n    <wu_name>{self.name.rpartition('_')[0]}</wu_name>\n"
            f"    <project_url>{self.url}</project_url>\n    <state>{self.state}</state>\n"
            f"    <report_deadline>{self.deadline_secs:.6f}</report_deadline>\n"
            f"    <estimated_cpu_time_remaining>{self.remaining_secs:.6f}</estimated_cpu_time_remaining>\n"
            f"{process}</result>\n"
        )


@dataclass(slots=True)
class SimulatedComputer:
    """One computer with its client's state: its login, its instructions, its projects by URL."""

    name: str
    cpid: str
    email: str = ""
    password: str = ""
    ncpus: int = 4
    p_fpops: int = 4 * 10**9
    p_model: str = "Example CPU [Family 6 Model 1 Stepping 1]"
    os_name: str = "Linux Debian"
    os_version: str = "Debian GNU/Linux 12 (bookworm) [6.1.0|libc 2.36]"
    devices: tuple[Device, ...] = ()
    ram_bytes: int = 16 << 30
    version: str = "7.20.5"
    authenticator: str = ""
    opaque: str = ""
    previous_cpid: str = ""
    dynamic: bool = False
    projects: dict[str, Attachment] = field(default_factory=dict)
    # Which tasks the manager asked for, "active" or "all"; empty: none
    asked_for: str = ""
    tasks: list[Task] = field(default_factory=list)
    # The numbers that projects know it by, where it is not 1
    hostids: dict[str, int] = field(default_factory=dict)

    @property
    def platform(self) -> str:
        return "windows_x86_64" if "Windows" in self.os_name else "x86_64-pc-linux-gnu"

    @property
    def vendor(self) -> str:
        return "AuthenticAMD" if self.p_model.startswith("AMD") else "GenuineIntel"

    def credit_micro(self, cpu_secs: float, gpu_secs: float) -> tuple[int, int]:
        """Return the estimated credit that the client counts for this time of its processors."""
        best = max((device.peak_flops for device in self.devices), default=0)
        return (
            int(cpu_secs * MICRO) * self.p_fpops // FLOPS_PER_CREDIT,
            int(gpu_secs * MICRO) * best // 5 // FLOPS_PER_CREDIT,
        )

    def request(self, now_secs: float) -> bytes:
        """Return the client's request at this time of its own clock."""
        projects = "".join(self._project(project) for project in self.projects.values())
        opaque = f"   <opaque>\n{self.opaque}\n   </opaque>\n" if self.opaque else ""
        said_before = self.previous_cpid
        previous = f"   <previous_host_cpid>{said_before}</previous_host_cpid>\n" if said_before else ""
        return (
            f'<?xml version="1.0" encoding="UTF-8" ?>\n<acct_mgr_request>\n{self._login()}'
            f"   <host_cpid>{self.cpid}</host_cpid>\n{previous}   <domain_name>{self.name}</domain_name>\n"
            f"   <client_version>{self.version}</client_version>\n   <run_mode>auto</run_mode>\n"
            f"    <platform_name>{self.platform}</platform_name>\n{projects}{self._host_info()}{opaque}"
            f"<time_stats>\n    <on_frac>0.900000</on_frac>\n    <active_frac>0.950000</active_frac>\n"
            f"    <now>{now_secs:.6f}</now>\n</time_stats>\n{self._results()}</acct_mgr_request>\n"
        ).encode()

    def apply_reply(self, reply: bytes) -> None:
        """Follow the reply; ValueError with the manager's sentence if it refuses."""
        text = reply.decode()
        if "<error_num>" in text:
            raise ValueError(text)
        self.dynamic = "<dynamic/>" in text
        self.asked_for = next((which for which in ("all", "active") if f"<send_tasks_{which}/>" in text), "")
        self.previous_cpid = self.cpid
        if key := _AUTHENTICATOR.search(text):
            self.authenticator = key[1]
        if opaque := _OPAQUE.search(text):
            self.opaque = opaque[1]
        for account in _ACCOUNT.findall(text):
            self._take_account({m[1] or m[3]: unescape(m[2] or "1").strip() for m in _ELEMENT.finditer(account)})

    def _take_account(self, account: dict[str, str]) -> None:
        url = account["url"]
        attached = self._attached(url)
        if "detach_when_done" in account:
            if attached is not None:
                del self.projects[attached.url]
        elif attached is not None:
            attached.managed = True
            # A share counts from the second reply on only.
            attached.share = float(account.get("resource_share", 100))
            # It exchanges weak keys only.
            if "_" in (key := account.get("authenticator", "")) and "_" in (attached.account_key or "_"):
                attached.account_key = key
        else:
            self.projects[url] = attached = Attachment(
                url, account_key=account.get("authenticator", ""), hostid=self.hostids.get(url, 1)
            )
            if tuple(map(int, self.version.split(".")[:2])) >= STARTS_FROM_HANDED:
                attached.totals = [_amount(kind, account.get(kind, "0")) for kind in KINDS]

    def _attached(self, url: str) -> Attachment | None:
        """Return the project at this address, as clients look it up: without scheme, `www.` and case."""
        looked_up = _looked_up(url)
        return next((project for project in self.projects.values() if _looked_up(project.url) == looked_up), None)

    def _login(self) -> str:
        if self.authenticator:
            return f"   <authenticator>{self.authenticator}</authenticator>\n"
        password_hash = client_password_hash(self.password, self.email)
        return f"   <name>{self.email}</name>\n   <password_hash>{password_hash}</password_hash>\n"

    def _project(self, project: Attachment) -> str:
        section = {
            "url": project.url,
            "project_name": project.name,
            "suspended_via_gui": 0,
            "hostid": project.hostid,
            "not_started_dur": "0.000000",
            "in_progress_dur": "0.000000",
            "attached_via_acct_mgr": int(project.managed),
            "dont_request_more_work": 0,
            "detach_when_done": 0,
            "ended": 0,
            "resource_share": f"{project.share:.6f}",
        }
        if self.dynamic:
            totals = [format_micro(total) for total in project.totals[:4]] + list(map(str, project.totals[4:]))
            section |= {"nrpc_failures": 0} | dict(zip(KINDS, totals, strict=True))
        lines = "".join(f"      <{tag}>{value}</{tag}>\n" for tag, value in section.items())
        no_work = "".join(f"    <sched_req_no_work>{type_}</sched_req_no_work>\n" for type_ in project.no_work)
        key = f"      <account_key>{project.account_key}</account_key>\n" if project.managed else ""
        return f"   <project>\n{lines}{no_work}{key}   </project>\n"

    def _results(self) -> str:
        if not self.asked_for:
            return ""
        listed = [task for task in self.tasks if task.process is not None or self.asked_for == "all"]
        return f"<results>\n{''.join(task.printed() for task in listed)}</results>\n"

    def _host_info(self) -> str:
        devices = "".join(self._device(device) for device in self.devices)
        return (
            f"<host_info>\n    <timezone>3600</timezone>\n    <domain_name>{self.name}</domain_name>\n"
            f"    <host_cpid>{self.cpid}</host_cpid>\n    <p_ncpus>{self.ncpus}</p_ncpus>\n"
            f"    <p_vendor>{self.vendor}</p_vendor>\n    <p_model>{self.p_model}</p_model>\n"
            f"    <p_features>fpu vme sse sse2 avx avx2</p_features>\n    <p_fpops>{self.p_fpops}.000000</p_fpops>\n"
            f"    <p_iops>{3 * self.p_fpops}.000000</p_iops>\n    <m_nbytes>{self.ram_bytes}.000000</m_nbytes>\n"
            "    <d_total>500000000000.000000</d_total>\n    <d_free>200000000000.000000</d_free>\n"
            f"    <os_name>{self.os_name}</os_name>\n    <os_version>{self.os_version}</os_version>\n"
            f"    <coprocs>\n{devices}    </coprocs>\n</host_info>\n"
        )

    @staticmethod
    def _device(device: Device) -> str:
        tag = {"NVIDIA": "coproc_cuda", "ATI": "coproc_ati", "intel_gpu": "coproc_intel_gpu"}.get(device.type, "coproc")
        type_ = f"   <type>{device.type}</type>\n" if tag == "coproc" else ""
        return (
            f"<{tag}>\n{type_}   <count>{device.count}</count>\n   <name>{device.name}</name>\n"
            f"   <available_ram>{device.ram_bytes}.000000</available_ram>\n"
            f"   <peak_flops>{device.peak_flops}.000000</peak_flops>\n</{tag}>\n"
        )


def _looked_up(url: str) -> str:
    return url.partition("//")[2].lower().removeprefix("www.").rstrip("/")


def _amount(kind: str, text: str) -> int:
    if kind.startswith("njobs"):
        return int(text)
    whole, _, fraction = text.partition(".")
    return int(whole + fraction.ljust(6, "0")[:6])
