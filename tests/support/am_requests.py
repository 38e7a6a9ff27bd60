"""Account-manager requests for tests: the captured ones, and a printer that writes as the client does."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from accounting.engine.amounts import KINDS

CAPTURES = Path(__file__).parents[1] / "data" / "protocol"


def captured(name: str) -> bytes:
    """A message of a real client or server, e.g. "am_request_gpu_work"."""
    return (CAPTURES / f"{name}.xml").read_bytes()


def captured_requests() -> dict[str, bytes]:
    return {path.stem: path.read_bytes() for path in sorted(CAPTURES.glob("am_request_*.xml"))}


@dataclass
class SentProject:
    """A project as a client holds it. totals: the six numbers in KINDS' order, the jobs as whole numbers."""

    url: str = "http://project.example.org/"
    name: bytes = b"Project"
    flags: tuple[bool, bool, bool, bool, bool] = (False, True, False, False, False)
    hostid: int = 0
    not_started_dur: float = 0.0
    in_progress_dur: float = 0.0
    resource_share: float = 100.0
    totals: tuple[float, float, float, float, int, int] | None = (0.0, 0.0, 0.0, 0.0, 0, 0)
    no_work: tuple[str, ...] = ()
    account_key: str = "1_77aa6d2754819a30f128656675a452bb"

    def printed(self) -> bytes:
        suspended, via_manager, no_more, when_done, ended = map(int, self.flags)
        lines = [
            "   <project>",
            f"      <url>{self.url}</url>",
            f"      <project_name>{self.name.decode('latin-1')}</project_name>",
            f"      <suspended_via_gui>{suspended}</suspended_via_gui>",
            f"      <hostid>{self.hostid}</hostid>",
            f"      <not_started_dur>{self.not_started_dur:f}</not_started_dur>",
            f"      <in_progress_dur>{self.in_progress_dur:f}</in_progress_dur>",
            f"      <attached_via_acct_mgr>{via_manager}</attached_via_acct_mgr>",
            f"      <dont_request_more_work>{no_more}</dont_request_more_work>",
            f"      <detach_when_done>{when_done}</detach_when_done>",
            f"      <ended>{ended}</ended>",
            f"      <resource_share>{self.resource_share:f}</resource_share>",
            "      <disk_usage>12288.000000</disk_usage>",
            "      <disk_share>2362232012.800000</disk_share>",
        ]
        if self.totals is not None:
            lines.append("      <nrpc_failures>0</nrpc_failures>")
            # The client's order is another one than ours; it must not matter.
            for index in (0, 2, 1, 3):
                lines.append(f"      <{KINDS[index]}>{self.totals[index]:f}</{KINDS[index]}>")
            lines += [f"      <{KINDS[index]}>{self.totals[index]}</{KINDS[index]}>" for index in (4, 5)]
            lines += [f"    <sched_req_no_work>{kind}</sched_req_no_work>" for kind in self.no_work]
        if via_manager:
            lines.append(f"      <account_key>{self.account_key}</account_key>")
        return "\n".join([*lines, "   </project>", ""]).encode("latin-1")


HOST_INFO = b"""<host_info>
    <timezone>3600</timezone>
    <domain_name>testhost</domain_name>
    <ip_addr>127.0.0.1</ip_addr>
    <host_cpid>00000000000000000000000000000a01</host_cpid>
    <p_ncpus>4</p_ncpus>
    <p_vendor>GenuineIntel</p_vendor>
    <p_model>Test CPU</p_model>
    <p_fpops>5000000000.000000</p_fpops>
    <m_nbytes>25276514304.000000</m_nbytes>
    <d_total>270553174016.000000</d_total>
    <d_free>80868081664.000000</d_free>
    <os_name>Linux Debian</os_name>
    <coprocs>
    </coprocs>
</host_info>
"""


@dataclass
class SentRequest:
    """A request as a client holds it; `printed` writes it line by line, as the client does, escaping nothing."""

    projects: Iterable[SentProject] = ()
    authenticator: bytes = b"be834110a013b1306352b55339acd440"
    name: bytes = b""
    password_hash: bytes = b""
    domain_name: bytes = b"testhost"
    client_version: str = "7.20.5"
    host_cpid: str = "00000000000000000000000000000a01"
    opaque: bytes = b""
    preferences: bytes = b""
    host_info: bytes = HOST_INFO
    now: float = 1_795_248_795.385632
    alt_platforms: tuple[str, ...] = field(default=())

    def printed(self) -> bytes:
        return b"".join(
            [
                b'<?xml version="1.0" encoding="UTF-8" ?>\n<acct_mgr_request>\n',
                self._credentials(),
                b"   <host_cpid>%s</host_cpid>\n" % self.host_cpid.encode(),
                b"   <domain_name>%s</domain_name>\n" % self.domain_name,
                b"   <client_version>%s</client_version>\n" % self.client_version.encode(),
                b"   <run_mode>auto</run_mode>\n    <platform_name>x86_64-pc-linux-gnu</platform_name>\n",
                *(
                    b"    <alt_platform>\n        <name>%s</name>\n    </alt_platform>\n" % name.encode()
                    for name in self.alt_platforms
                ),
                *(project.printed() for project in self.projects),
                b"<working_global_preferences>\n<global_preferences>\n   <mod_time>0.000000</mod_time>\n"
                b"</global_preferences>\n</working_global_preferences>\n",
                self.preferences,
                self.host_info,
                b"   <opaque>\n%s\n   </opaque>\n" % self.opaque if self.opaque else b"",
                b"<time_stats>\n    <on_frac>0.999988</on_frac>\n    <connected_frac>-1.000000</connected_frac>\n"
                b"    <now>%f</now>\n</time_stats>\n" % self.now,
                b"<net_stats>\n    <bwup>3065951.010948</bwup>\n    <avg_up>266553814467.196686</avg_up>\n"
                b"    <bwdown>5676499.067179</bwdown>\n</net_stats>\n</acct_mgr_request>\n",
            ]
        )

    def _credentials(self) -> bytes:
        if self.authenticator:
            return b"   <authenticator>%s</authenticator>\n" % self.authenticator
        return b"   <name>%s</name>\n   <password_hash>%s</password_hash>\n" % (self.name, self.password_hash)
