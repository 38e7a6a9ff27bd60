"""A scheduler request as dataclasses. Pure; scheduler/wire/requests.py reads them from a message.

Times are Unix seconds, durations seconds, sizes bytes, speeds FLOPS. Texts are as sent, without surrounding white
space; absent ones are empty, absent numbers None.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import msgspec

from portal.languages.messages import Message
from portal.wire.hardware import NO_CONTAINERS, Containers

CPU: Final = "CPU"
GPU_TYPES: Final = ("NVIDIA", "ATI", "intel_gpu", "apple_gpu")
"""Types that versions can be for, and that have records and credit (``credit.models.ProcessorType``)."""
ANONYMOUS: Final = "anonymous"


@dataclass(frozen=True, slots=True)
class WorkRequest:
    """Work requested for one processor type: this many seconds, and this many idle instances to be filled.

    ``delay_secs``: how long until a new job could start.
    """

    secs: float = 0.0
    instances: float = 0.0
    delay_secs: float = 0.0


@dataclass(frozen=True, slots=True)
class Gpu:
    """Coprocessors of a type. ``driver``: NVIDIA's number (53504), or AMD's of CAL (10041848 for 1.4.1848), else 0.

    ``capability`` and ``opencl``: major × 100 + minor; ``cuda``: major × 1000 + minor × 10. 0: not reported.
    """

    type: str
    count: int
    peak_flops: float
    ram_bytes: int
    driver: int = 0
    capability: int = 0
    has_opencl: bool = False
    opencl: int = 0
    cuda: int = 0
    has_doubles: bool = False
    model: str = ""


@dataclass(frozen=True, slots=True)
class ReportedFile:
    """An output as the client reports it; ``error`` says why it could not be uploaded.

    ``address_key``: the query of its upload's address, known only to recipients of the job.
    """

    name: str
    nbytes: int | None
    md5: str
    error: str
    address_key: str = ""


@dataclass(slots=True)
class ReportedResult:
    """A finished job. ``faults``: reported values that could not be used, each with the field and the limit."""

    name: str
    state: int = 0
    exit_status: int = 0
    cpu_secs: float | None = None
    elapsed_secs: float | None = None
    fpops_cumulative: float | None = None
    fpops_per_cpu_sec: float | None = None
    peak_working_set_bytes: int | None = None
    peak_swap_bytes: int | None = None
    peak_disk_bytes: int | None = None
    stderr_text: str = ""
    files: tuple[ReportedFile, ...] = ()
    faults: list[Message] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ClientVersion:
    """A program that the client has; on the anonymous platform, one of the versions to choose from."""

    app_name: str
    version_num: int
    platform: str
    plan_class: str
    avg_ncpus: float
    flops: float
    gpu_type: str = ""
    gpu_count: float = 0.0

    @property
    def processor_type(self) -> str:
        return self.gpu_type or CPU


@dataclass(frozen=True, slots=True)
class TrickleUp:
    """A trickle-up message of a job."""

    result_name: str
    written_at: float
    variety: str
    text: str


class HostInfo(msgspec.Struct, frozen=True):
    """The fields of the computer that the scheduler needs at each request. ``raw`` has all fields."""

    host_cpid: str = ""
    domain_name: str = ""
    os_name: str = ""
    os_version: str = ""
    p_vendor: str = ""
    p_model: str = ""
    p_features: frozenset[str] = frozenset()
    ncpus: int = 1
    p_fpops: float = 0.0
    m_nbytes: float | None = None
    d_free: float | None = None
    containers: Containers = NO_CONTAINERS
    virtualbox_version: str = ""
    allows_vms: bool = True
    raw: bytes = b""


class SchedulerRequest(msgspec.Struct):
    """A scheduler request.

    ``work_requests``: work requested by processor type, as the client says; ``is_new_style``: it names types at all,
    else only ``work_req_secs``. ``other_results``: names of the jobs on the computer that are not reported now; None if
    the client does not say, or names too many. ``unread_results``: names of reported ones beyond the limit; ``is_cut``:
    there was more of the message than is read. ``has_unread_trickles``: there were more trickle-up messages than are
    read; the client must discard the others. ``held_files``: names of files that the client keeps after their jobs.
    ``refused_types``: processor types that the preferences forbid. ``available_fractions``: of the time, on_frac,
    active_frac and gpu_active_frac. ``ram_fraction``, ``ncpus_percent``: the most of its memory and processors that
    BOINC may use. ``preferences_raw``: the general preferences that were saved at ``preferences_at`` by the account
    whose address has that hash; empty if too long. ``refused_containers``: "docker" and "wsl", if the client may not
    use them. ``keywords_yes`` and ``keywords_no``: the volunteer's, which the client has from its account manager.
    ``client_opaque``: the beginning of a note for projects, which BOINC's own server does not use either. ``address``:
    where the request came from, as the server knows it; empty if unknown. ``named_deadlines``: those that the client
    reports, by names of its jobs.
    """

    authenticator: str = ""
    hostid: int = 0
    rpc_seqno: int = 0
    client_version: str = ""
    allows_multiple_clients: bool = False
    sends_no_work: bool = False
    work_req_secs: float = 0.0
    is_new_style: bool = False
    work_requests: dict[str, WorkRequest] = {}
    platform_name: str = ""
    alt_platforms: tuple[str, ...] = ()
    code_sign_key: str = ""
    cross_project_id: str = ""
    duration_correction_factor: float = 1.0
    available_fractions: tuple[float, float, float] = (1.0, 1.0, 1.0)
    time_stats: dict[str, float] = {}
    net_stats: dict[str, float] = {}
    disk_usage: dict[str, float] = {}
    ram_fraction: float = 1.0
    ncpus_percent: float = 100.0
    is_cut: bool = False
    preferences_at: float = 0.0
    preferences_raw: bytes = b""
    preferences_email_hash: str = ""
    held_files: frozenset[str] = frozenset()
    refused_types: frozenset[str] = frozenset()
    refused_containers: tuple[str, ...] = ()
    keywords_yes: frozenset[int] = frozenset()
    keywords_no: frozenset[int] = frozenset()
    client_brand: str = ""
    client_opaque: str = ""
    address: str = ""
    host: HostInfo = HostInfo()
    gpus: tuple[Gpu, ...] = ()
    coprocs_raw: bytes = b""
    results: list[ReportedResult] = []
    unread_results: set[str] = set()
    trickles: list[TrickleUp] = []
    has_unread_trickles: bool = False
    client_versions: list[ClientVersion] = []
    other_results: frozenset[str] | None = None
    named_deadlines: dict[str, float] = {}

    @property
    def usable_ncpus(self) -> int:
        """Return the processors that BOINC may use by the volunteer's preferences: at least one, as in the client."""
        return max(1, int(self.host.ncpus * self.ncpus_percent / 100))

    @property
    def wants_work(self) -> bool:
        return any(requested.secs > 0 or requested.instances > 0 for requested in self.work_requests.values())

    @property
    def asks_for_jobs(self) -> bool:
        """Whether jobs may be sent: work is requested, and nothing forbids it."""
        return self.wants_work and not self.sends_no_work

    @property
    def lists_no_task(self) -> bool:
        """Whether the client says that it has no tasks except those that it reports now."""
        return self.other_results is not None and not (self.other_results or self.unread_results or self.is_cut)

    @property
    def has_weak_key(self) -> bool:
        """Whether its key is weak, `<account number>_<digest>`: a computer that has one need not be trusted with the
        account.
        """
        return "_" in self.authenticator

    @property
    def is_anonymous(self) -> bool:
        return self.platform_name == ANONYMOUS

    @property
    def platforms(self) -> tuple[str, ...]:
        """Return the platforms, the main one first."""
        return (self.platform_name, *self.alt_platforms)
