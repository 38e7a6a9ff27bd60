"""A fleet for measuring: hosts with keys, and the requests that they send, 13 kB each."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from django.conf import settings
from django.utils import timezone

from accounting.engine.amounts import FLOPS_PER_CREDIT
from accounting.models import HostLedger, Project
from accounting.rpc import account_keys
from portal.models import ClientKey, Host, User
from portal.wire import credentials, signing

HOSTS: Final = 2000
PROJECTS: Final = 3
REQUEST_BYTES: Final = 13_000
NCPUS: Final = 8
P_FPOPS: Final = 4_000_000_000
# The credit that a client with these processors counts: micro-credits per micro-second of one processor.
CREDIT_PER_SEC: Final = P_FPOPS / FLOPS_PER_CREDIT
FEATURES: Final = "fpu vme de pse tsc msr pae mce cx8 apic sep mtrr pge mca cmov pat pse36 clflush mmx fxsr sse sse2 "


@dataclass(slots=True)
class Member:
    """A computer of the fleet: its requests' fixed parts, and how many it has sent."""

    head: bytes
    tail: bytes
    sent: int = 0

    def request(self) -> bytes:
        """Build the next request: every project has done another second of work on one processor."""
        self.sent += 1
        secs = self.sent
        projects = b"".join(_project(index, secs) for index in range(PROJECTS))
        return b"%b%b%b" % (self.head, projects, self.tail.replace(b"@NOW@", b"%d.000000" % (1_795_000_000 + secs)))


def create(nhosts: int = HOSTS) -> list[Member]:
    """Create the fleet in the database: one volunteer and one key per host, all with a day's allowance."""
    _signing_key()
    for index in range(PROJECTS):
        project = Project.objects.create(name=f"Project {index}", master_url=_url(index))
        project.shared_account_key = account_keys.seal_shared(project, f"{index}_77aa6d2754819a30f128656675a452bb")
        project.save()
    now = timezone.now()
    users = User.objects.bulk_create(
        User(email=f"volunteer{number}@example.org", name=f"Volunteer {number}") for number in range(nhosts)
    )
    hosts = Host.objects.bulk_create(
        Host(owner=user, domain_name=f"host{user.pk}", ncpus=NCPUS, p_fpops=P_FPOPS) for user in users
    )
    HostLedger.objects.bulk_create(
        HostLedger(host=host, last_at=now - dt.timedelta(days=1), level=[10**13] * 5) for host in hosts
    )
    keys = [credentials.new_client_key() for _ in users]
    ClientKey.objects.bulk_create(
        ClientKey(
            user=user,
            host=host,
            origin=ClientKey.Origin.ATTACH,
            key_hash=credentials.key_hash(key),
            last_used_at=now,
        )
        for user, host, key in zip(users, hosts, keys, strict=True)
    )
    return [member(host, key) for host, key in zip(hosts, keys, strict=True)]


def _signing_key() -> None:
    public = Path(settings.AM_SIGNING_KEY_PUBLIC)
    if not public.exists():
        public.parent.mkdir(parents=True, exist_ok=True)
        public.write_text(signing.public_key_text(signing.generate_key().public_key()))


def _url(index: int) -> str:
    return f"http://project{index}.example.org/science/"


def _project(index: int, secs: int) -> bytes:
    return (
        f"   <project>\n      <url>{_url(index)}</url>\n      <project_name>Project {index}</project_name>\n"
        "      <suspended_via_gui>0</suspended_via_gui>\n      <hostid>17</hostid>\n"
        "      <not_started_dur>3600.000000</not_started_dur>\n      <in_progress_dur>812.500000</in_progress_dur>\n"
        "      <attached_via_acct_mgr>1</attached_via_acct_mgr>\n"
        "      <dont_request_more_work>0</dont_request_more_work>\n      <detach_when_done>0</detach_when_done>\n"
        "      <ended>0</ended>\n      <resource_share>100.000000</resource_share>\n"
        "      <disk_usage>12288.000000</disk_usage>\n      <disk_share>2362232012.800000</disk_share>\n"
        "      <nrpc_failures>0</nrpc_failures>\n"
        f"      <cpu_ec>{secs * CREDIT_PER_SEC:.6f}</cpu_ec>\n      <cpu_time>{secs}.000000</cpu_time>\n"
        "      <gpu_ec>0.000000</gpu_ec>\n      <gpu_time>0.000000</gpu_time>\n"
        f"      <njobs_success>{secs // 100}</njobs_success>\n      <njobs_error>0</njobs_error>\n"
        "    <sched_req_no_work>CPU</sched_req_no_work>\n"
        f"      <account_key>{index}_77aa6d2754819a30f128656675a452bb</account_key>\n   </project>\n"
    ).encode()


def member(host: Host, key: str) -> Member:
    """Return the computer known by this key; its requests have the size of real ones."""
    head = (
        '<?xml version="1.0" encoding="UTF-8" ?>\n<acct_mgr_request>\n'
        f"   <authenticator>{key}</authenticator>\n   <host_cpid>{host.pk:032x}</host_cpid>\n"
        f"   <domain_name>{host.domain_name}</domain_name>\n   <client_version>8.2.4</client_version>\n"
        "   <run_mode>auto</run_mode>\n    <platform_name>x86_64-pc-linux-gnu</platform_name>\n"
        f"   <previous_host_cpid>{host.pk:032x}</previous_host_cpid>\n"
    )
    tail = _preferences() + _host_info(host) + f"   <opaque>\n<host>{host.token}</host>\n   </opaque>\n" + _statistics()
    size = len(head) + len(tail) + PROJECTS * len(_project(0, 1))
    filled = tail.replace("@FEATURES@", (FEATURES * 200)[: max(0, REQUEST_BYTES - size)])
    return Member(head.encode(), filled.encode())


def _preferences() -> str:
    lines = "".join(f"   <preference_{number}>{number}.000000</preference_{number}>\n" for number in range(34))
    section = f"<global_preferences>\n   <mod_time>1700000000.000000</mod_time>\n{lines}</global_preferences>\n"
    return f"<working_global_preferences>\n{section}</working_global_preferences>\n{section}"


def _host_info(host: Host) -> str:
    return (
        "<host_info>\n    <timezone>0</timezone>\n"
        f"    <domain_name>{host.domain_name}</domain_name>\n    <ip_addr>127.0.0.1</ip_addr>\n"
        f"    <host_cpid>{host.pk:032x}</host_cpid>\n    <p_ncpus>{NCPUS}</p_ncpus>\n"
        "    <p_vendor>GenuineIntel</p_vendor>\n    <p_model>Example CPU [Family 6 Model 1 Stepping 1]</p_model>\n"
        f"    <p_features>@FEATURES@</p_features>\n    <p_fpops>{P_FPOPS}.000000</p_fpops>\n"
        "    <p_iops>9000000000.000000</p_iops>\n    <p_membw>1000000000.000000</p_membw>\n"
        "    <p_calculated>1795000000.203461</p_calculated>\n    <m_nbytes>25276514304.000000</m_nbytes>\n"
        "    <m_cache>503316480.000000</m_cache>\n    <m_swap>0.000000</m_swap>\n"
        "    <d_total>270553174016.000000</d_total>\n    <d_free>80868081664.000000</d_free>\n"
        "    <os_name>Linux Debian</os_name>\n    <os_version>Debian GNU/Linux 12 (bookworm)</os_version>\n"
        "    <n_usable_coprocs>0</n_usable_coprocs>\n    <coprocs>\n    </coprocs>\n</host_info>\n"
    )


def _statistics() -> str:
    names = (
        "on_frac connected_frac cpu_and_network_available_frac active_frac gpu_active_frac client_start_time"
        " total_start_time total_duration total_active_duration total_gpu_active_duration previous_uptime"
        " session_active_duration session_gpu_active_duration"
    )
    lines = "".join(f"    <{name}>0.971234</{name}>\n" for name in names.split())
    return (
        f"<time_stats>\n{lines}    <now>@NOW@</now>\n</time_stats>\n<net_stats>\n    <bwup>3065951.010948</bwup>\n"
        "    <bwdown>5676499.067179</bwdown>\n</net_stats>\n</acct_mgr_request>\n"
    )
