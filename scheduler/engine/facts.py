"""The facts for the rules of sending: apps, their versions, plan classes, jobs and the requesting computer.

Speeds are in FLOPS, sizes in bytes, times in seconds. What is created for every request is a msgspec Struct: a
dataclass with many fields takes ten times as long.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from credit.engine.averages import Average
from credit.engine.facts import HostVersionFacts
from credit.engine.rules import Rules
from scheduler.engine.hr_classes import Redundancy, class_of
from scheduler.engine.lanes import Requirement
from scheduler.engine.request import CPU, ClientVersion, Gpu


class RecordKey(NamedTuple):
    """The key of a host's record: for a version, or (``version_id`` 0) for an app with the host's own programs of a
    type.
    """

    app_id: int
    version_id: int
    processor_type: str


@dataclass(frozen=True, slots=True)
class AppFacts:
    """An app. ``typical_fpops``: of a waiting job, None if there is none; ``is_non_cpu_intensive``: a computer has one
    job of it at a time, alongside all others. Its own limits of jobs (at once for each processor and each GPU, and in
    one reply) are None if only the site's count. ``keywords``: the subjects of its jobs, and what those are part of.
    """

    id: int
    name: str
    weight: float
    max_jobs_per_day_init: int
    rules: Rules
    is_adaptive: bool = False
    one_result_per_user: bool = True
    is_non_cpu_intensive: bool = False
    max_jobs_in_progress: int | None = None
    max_gpu_jobs_in_progress: int | None = None
    max_jobs_per_rpc: int | None = None
    # `trickle_downs.extended`
    deadline_extension_secs: int = 0
    max_extended_secs: int | None = None
    typical_fpops: float | None = None
    keywords: frozenset[int] = frozenset()
    # Queue positions of the waiting jobs of the highest priority: first and last
    first_place: int = 0
    last_place: int = 0
    # -priority of the most and of the least urgent waiting job, None if there is none
    first_rank: int | None = None
    last_rank: int | None = None
    # Which computers may confirm one another's results
    redundancy: Redundancy = Redundancy.OFF
    is_homogeneous_version: bool = False
    # Replacements go first to computers that return jobs within this time; None: to all alike
    reliable_turnaround_secs: float | None = None
    # The speeds at which its size classes after the first begin (`choice.sizes`)
    size_limits: tuple[float, ...] = ()
    # The users whose computers alone get its jobs; None: all
    testers: frozenset[int] | None = None

    @property
    def is_paused(self) -> bool:
        """Whether no jobs are sent for now; those that computers have continue."""
        return self.weight <= 0


@dataclass(frozen=True, slots=True)
class PlanClassRules:
    """Which computers can run the versions of a plan class, and what their jobs use (scheduler document)."""

    name: str
    processor_type: str
    min_ncpus: int = 0
    max_ncpus: int = 1
    cpu_features: frozenset[str] = frozenset()
    min_gpu_ram_bytes: int = 0
    min_driver: int = 0
    min_capability: int = 0
    needs_opencl: bool = False
    avg_ncpus: float = 1.0
    gpu_usage: float = 0.0
    # Whether programs are told their number of threads (--nthreads)
    nthreads_cmdline: bool = False
    # Factor on a version's assumed speed until it is measured
    projected_flops_scale: float = 1.0
    # `containers.DOCKER`, `containers.WSL`
    needs_containers: frozenset[str] = frozenset()
    # Minimum and maximum; numbers as in plan_class_spec.xml, 0: any
    min_client: int = 0
    max_client: int = 0
    max_driver: int = 0
    max_capability: int = 0
    min_cuda: int = 0
    max_cuda: int = 0
    min_opencl: int = 0
    max_opencl: int = 0
    min_gpu_flops: float = 0.0
    max_gpu_flops: float = 0.0
    needs_doubles: bool = False
    # GPU memory that a job keeps, and the share of its FLOPs that the CPU computes; 0: unknown
    gpu_ram_used_bytes: int = 0
    cpu_share: float = 0.0
    # For the texts of `Computer.texts`; empty: any
    patterns: tuple[str, str, str] = ("", "", "")
    gpu_pattern: str = ""
    # `system_versions`
    min_os: int = 0
    max_os: int = 0
    min_libc: int = 0
    needs_virtualbox: bool = False
    needs_acceleration: bool = False
    min_virtualbox: int = 0
    max_virtualbox: int = 0
    excluded_virtualbox: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Version:
    """A released version of an app: the fields that matter for sending.

    ``testers``: the ids of the only users whose computers get it while it is tested (beta); None: all get it.
    """

    id: int
    app_id: int
    platform: str
    version_num: int
    plan_class: str
    processor_type: str
    avg_ncpus: float
    gpu_usage: float
    min_gpu_ram_bytes: int = 0
    is_deprecated: bool = False
    # BOINC versions, as a client's number (`client_versions.number_of`); 0: any
    min_client: int = 0
    max_client: int = 0
    pfc: Average = field(default_factory=Average)
    testers: frozenset[int] | None = None


@dataclass(frozen=True, slots=True)
class Computer:
    """The computer that sent the request.

    ``ncpus``: the processors that BOINC may use. ``availability``: the share of the time in which it computes, on CPUs
    and on GPUs. ``max_threads``: the most processors that a job may use, by the volunteer's preferences for the
    project; ``is_limited``: these leave out some processors. ``containers``: those that BOINC can use there
    (`containers.usable`). ``platform``: the primary one. ``client``: the version of BOINC (8.2.4: 80204).
    ``virtualbox``: its version as reported by the client; ``allows_vms``: no virtual machine has failed there because
    the processor cannot accelerate it. ``texts``: of the system's version, and of the processor's vendor and model.
    ``os_number``, ``libc_number``: as in `choice.system_versions`.
    """

    ncpus: int
    p_fpops: float
    gpus: dict[str, Gpu]
    features: frozenset[str] = frozenset()
    ram_bytes: float | None = None
    disk_bytes: float | None = None
    cpu_availability: float = 1.0
    gpu_availability: float = 1.0
    containers: frozenset[str] = frozenset()
    max_threads: int | None = None
    is_limited: bool = False
    os_name: str = ""
    platform: str = ""
    client: int = 0
    virtualbox: str = ""
    allows_vms: bool = True
    texts: tuple[str, str, str] = ("", "", "")
    os_number: int = 0
    libc_number: int = 0

    def instances(self, processor_type: str) -> int:
        gpu = self.gpus.get(processor_type)
        if processor_type == CPU:
            return self.ncpus
        return gpu.count if gpu else 0

    def hr_class(self, redundancy: Redundancy) -> int:
        """Return its class: the computers that may confirm its results (`hr_classes.class_of`); 0 if it has none."""
        _, vendor, model = self.texts
        return class_of(redundancy, self.os_name, vendor, model, self.features)

    def availability(self, processor_type: str) -> float:
        return self.cpu_availability if processor_type == CPU else self.gpu_availability


@dataclass(frozen=True, slots=True)
class Usage:
    """The processors that a job is given, and their peak FLOPS; for a GPU with an unknown peak, an assumed one."""

    ncpus: float
    gpus: float
    peak_flops: float
    is_peak_known: bool = True


@dataclass(frozen=True, slots=True)
class Choice:
    """A version chosen for a computer. ``version`` None: one of the client's own, which is ``client_version``."""

    key: RecordKey
    usage: Usage
    flops: float
    version: Version | None = None
    client_version: ClientVersion | None = None

    @property
    def processor_type(self) -> str:
        return self.key.processor_type

    @property
    def instances(self) -> float:
        """Return how many instances of its processor type a job occupies."""
        return self.usage.gpus if self.processor_type != CPU else self.usage.ncpus


class JobDetails(msgspec.Struct):
    """The part of a workunit that only the reply needs."""

    workunit_name: str
    command_line: str
    input_files: list[dict[str, Any]]
    output_files: list[dict[str, Any]]


class Job(msgspec.Struct, frozen=True):
    """A result that may be sent, with the fields of its workunit."""

    id: int
    workunit_id: int
    app_id: int
    name: str
    fpops_est: float
    fpops_bound: float
    memory_bytes: int
    disk_bytes: int
    delay_bound_secs: int
    min_quorum: int
    details: JobDetails | None = None
    # What its workunit is bound to, and asks for (`engine.lanes`); 0: nothing
    hr_class: int = 0
    version_num: int = 0
    version_id: int = 0
    lane: int = 0

    @property
    def requirement(self) -> Requirement:
        """Return which versions it may run on."""
        return Requirement(self.version_num, self.version_id)


class JobQuery(msgspec.Struct):
    """A search for jobs of an app: at most this many, and only those that can suit.

    ``flops``: of the fastest version, times the availability. ``rank`` (-priority) and ``begin``: the position in the
    queue at which to begin. ``ties``: of the requester (`engine.choice.ties`); ``avoids_ties``: exclude workunits if a
    holder of another copy has such a tie; ``is_strict``: even if there are no others, for a delay bound after they got
    it. ``lanes``: those for this computer with waiting jobs (`engine.lanes`). ``sizes``: the lanes of size classes, if
    the app has any, in the order in which the computer gets their jobs. ``held_files``: what the computer has kept of
    earlier jobs. Ready jobs that need some of it go first; SQL ignores it.
    """

    app_id: int
    most: int
    flops: float
    delay_secs: float
    memory_bytes: float
    disk_bytes: float
    one_per_user: bool
    rank: int
    begin: int
    ties: list[int] = []
    avoids_ties: bool = False
    is_strict: bool = False
    lanes: list[int] = []
    held_files: list[str] = []
    sizes: list[int] = []

    @property
    def has_lanes(self) -> bool:
        return bool(self.lanes or self.sizes)

    def with_ties(self) -> JobQuery:
        """Return the same query for any copies, whoever has others."""
        return msgspec.structs.replace(self, avoids_ties=False)


Records = dict[RecordKey, HostVersionFacts]
