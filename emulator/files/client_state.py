"""Read a client's `client_state.xml`: the computer, its projects, applications and jobs, each with its position.

The file is a list: a project, then its applications, versions, workunits and results, then the next project.
Emulator-only tags (distributions, availability) are read too; the rest is ignored
(docs/explanation/emulator-policies.md has the table). This module only parses the file; emulator.files.scenario makes a
scenario from it. emulator.files.present_tasks reads its tasks. Pure: bytes in, dataclasses out.
"""

from dataclasses import dataclass, field, replace
from typing import Final

from emulator.engine.scenario import (
    CPU,
    DAY_SECS,
    GPU_EFFICIENCY,
    MAX_APPS,
    MAX_FAILURES,
    MAX_FLOP,
    MAX_FLOPS,
    MAX_INSTANCES,
    MAX_JOBS,
    MAX_KINDS,
    MAX_PROJECTS,
    MAX_RAM_BYTES,
    MAX_SECS,
    MAX_SHARE,
    MAX_VERSIONS,
    MIN_JOB_FLOP,
    Availability,
    Normal,
    Processor,
    Standing,
    Version,
)
from emulator.files.present_tasks import ActiveTask, StateJob, read_active_task, read_task
from emulator.files.sections import STATE_BYTES_MAX, ScenarioFileError, Schema, Section, SourceFile, read_sections
from emulator.files.unused import Tally

STATE_FILE: Final = "client_state.xml"
DEFAULT_JOB_FLOP: Final = 3.6e14
DEFAULT_LATENCY_SECS: Final = 10 * 86400.0
REQUEST_DELAY_MAX_SECS: Final = 86400.0  # a longer time between two RPCs is a back-off, not the server's rule

_COPROC_KINDS: Final = {
    "coproc_cuda": "NVIDIA",
    "coproc_ati": "ATI",
    "coproc_intel_gpu": "intel_gpu",
    "coproc_apple_gpu": "apple_gpu",
    "coproc": "",  # names its type itself
}
_SCHEMA: Final[Schema] = {
    "host_info": {"coprocs": {name: {} for name in _COPROC_KINDS}},
    "time_stats": {},
    "project": {"available": {}, "rsc_backoff_time": {}, "rsc_backoff_interval": {}},
    "app": {"fpops": {}},
    "app_version": {"coproc": {}},
    "workunit": {},
    "result": {},
    "active_task_set": {"active_task": {}},
}


@dataclass(slots=True)
class StateVersion:
    """An app version; `flops` 0 when the file does not say how fast it is."""

    section: Section
    version_num: int
    platform: str
    plan_class: str
    version: Version


@dataclass(slots=True)
class StateApp:
    """An application. Fields are None where the file does not have the emulator-only tag."""

    section: Section
    name: str
    non_cpu_intensive: bool
    weight: float
    max_concurrent: int
    latency_secs: float | None
    estimate_flop: float | None
    size: Normal | None
    versions: list[StateVersion] = field(default_factory=list)
    working_set_bytes: float = 0.0


@dataclass(slots=True)
class Contacts:
    """When a client may and will contact a project, and for which kinds. Times are Unix times; 0: none."""

    allowed_at: float
    next_rpc_at: float
    failures: int
    request_delay_secs: float
    backoffs: dict[str, tuple[float, float]]  # by kind of processor: until when, and the interval in seconds
    not_asked: tuple[str, ...]  # kinds of processor


@dataclass(slots=True)
class StateProject:
    """A project with everything that follows it in the file."""

    section: Section
    url: str
    name: str
    share: float
    available: Availability
    standing: Standing
    suspended: bool
    no_new_tasks: bool
    uses_dcf: bool
    dcf: float
    contacts: Contacts
    apps: dict[str, StateApp] = field(default_factory=dict)
    workunits: dict[str, tuple[str, float]] = field(default_factory=dict)  # name: (application, FLOP)
    jobs: list[StateJob] = field(default_factory=list)


@dataclass(slots=True)
class ClientState:
    """The whole file. Kinds of GPU without a peak speed are in `unknown_gpus`, not in `processors`."""

    processors: list[Processor] = field(default_factory=list)
    unknown_gpus: list[str] = field(default_factory=list)
    on: Availability = field(default_factory=Availability)
    connected: Availability = field(default_factory=Availability)
    active: Availability = field(default_factory=Availability)
    gpu_active: Availability = field(default_factory=Availability)
    host_name: str = ""
    venue: str = ""
    projects: list[StateProject] = field(default_factory=list)
    jobs_count: int = 0
    ram_bytes: float = 0.0
    utc_offset_secs: float = 0.0
    is_active_measured: bool = False
    last_update: float = 0.0  # of time_stats
    now: float = 0.0  # when the client wrote it, as Unix time; 0: the file has no time


def read_state(data: bytes, tally: Tally) -> ClientState:
    """Return the content of the file; `tally` counts its unused elements.

    Raises ScenarioFileError (file, line, tag, reason) if it cannot be used.
    """
    state = ClientState()
    tasks: list[ActiveTask] = []
    last: Section | None = None
    for section in read_sections(SourceFile(STATE_FILE, data), "client_state", _SCHEMA, STATE_BYTES_MAX):
        last = section
        if section.name == "host_info":
            _read_host(state, section)
        elif section.name == "time_stats":
            _read_time_stats(state, section)
        elif section.name == "project":
            if len(state.projects) >= MAX_PROJECTS:
                raise section.error("project", "too_many_projects", limit=MAX_PROJECTS)
            state.projects.append(_project(section))
        elif section.name == "client_state":
            state.venue = section.text("host_venue")
        elif section.name == "active_task_set":
            tasks += [read_active_task(task) for task in section.named("active_task")]
        else:
            _read_of_project(state, section)
        tally.add(section)
    if not state.processors:
        raise ScenarioFileError(STATE_FILE, "host_info", 0, "host_missing")
    if not state.projects:
        raise ScenarioFileError(STATE_FILE, "project", last.at if last else 0, "projects_missing")
    _add_progress(state, tasks)
    state.now = state.now or _newest_time(state)
    return state


def _add_progress(state: ClientState, tasks: list[ActiveTask]) -> None:
    jobs = {(project.url, job.name): job for project in state.projects for job in project.jobs}
    apps = {(project.url, app.name): app for project in state.projects for app in project.apps.values()}
    measured: dict[tuple[str, str], float] = {}
    for task in tasks:
        job = jobs.get((task.url, task.result))
        if job is not None:
            job.add_progress(task)
            key = task.url, job.app
            measured[key] = max(measured.get(key, 0.0), task.working_set_bytes)
    # The observed needs of its tasks count more than the project's bound.
    for key, nbytes in measured.items():
        if nbytes and key in apps and "working_set" not in apps[key].section.leaves:
            apps[key].working_set_bytes = nbytes


def _newest_time(state: ClientState) -> float:
    """Return the newest past time in the file, for one that does not say when it was written; 0 if there is none."""
    times = [job.received_at for project in state.projects for job in project.jobs]
    times += [job.completed_at for project in state.projects for job in project.jobs]
    return max([state.last_update, *times], default=0.0)


def _read_host(state: ClientState, section: Section) -> None:
    if "p_ncpus" not in section.leaves or "p_fpops" not in section.leaves:
        raise section.error("host_info", "host_speed_missing")
    cpus = section.integer("p_ncpus", 1, 1, MAX_INSTANCES)
    state.processors = [Processor(CPU, cpus, section.number("p_fpops", 1e9, 1, MAX_FLOPS))]
    state.host_name = section.text("domain_name")
    state.ram_bytes = section.number("m_nbytes", 0, 0, MAX_RAM_BYTES)
    state.utc_offset_secs = section.number("timezone", 0, -DAY_SECS, DAY_SECS)
    gpus = [gpu for coprocs in section.named("coprocs") for gpu in coprocs.sections]
    for gpu in gpus:
        kind = gpu_kind(_COPROC_KINDS[gpu.name] or gpu.text("type"))
        count = gpu.integer("count", 1, 0, MAX_INSTANCES)
        peak = gpu.number("peak_flops", 0, 0, MAX_FLOPS)
        if not kind:
            raise gpu.error("type", "gpu_type_missing")
        if kind in [processor.kind for processor in state.processors] or len(state.processors) >= MAX_KINDS:
            raise gpu.error("type", "too_many_kinds", kind=kind, limit=MAX_KINDS)
        if peak < 1:
            state.unknown_gpus.append(kind)
        elif count:
            state.processors.append(Processor(kind, count, peak, GPU_EFFICIENCY))


def gpu_kind(name: str) -> str:
    """Return the kind of processor for a coprocessor type; early clients called NVIDIA's "CUDA"."""
    return "NVIDIA" if name.upper() == "CUDA" else name


def _read_time_stats(state: ClientState, section: Section) -> None:
    def process(name: str) -> Availability:
        # A client that could not measure how long it was connected writes -1.
        least = -1 if name == "connected" else 0
        fraction = section.number(f"{name}_frac", 1, least, 1)
        if least < 0 and -1 < fraction < 0:
            raise section.error(f"{name}_frac", "not_a_fraction")
        return Availability(1 if fraction < 0 else fraction, section.number(f"{name}_lambda", 3600, 1, MAX_SECS))

    # `now` appears in the client's message to its manager. Its own file has no such tag, but the client's uptime.
    since, up_secs = (
        section.number("client_start_time", 0, 0, MAX_SECS),
        section.number("previous_uptime", 0, 0, MAX_SECS),
    )
    state.now = section.number("now", 0, 0, MAX_SECS) or (since + up_secs if since > 0 and up_secs > 0 else 0.0)
    state.last_update = section.number("last_update", 0, 0, MAX_SECS)
    state.on, state.connected = process("on"), process("connected")
    state.active, state.gpu_active = process("active"), process("gpu_active")
    state.is_active_measured = "active_frac" in section.leaves


def _project(section: Section) -> StateProject:
    url = section.text("master_url")
    if not url:
        raise section.error("master_url", "project_url_missing")
    available = Availability()
    for process in section.named("available"):
        available = Availability(process.number("frac", 1, 0, 1), process.number("lambda", 3600, 1, MAX_SECS))
    debts = [("long_term_debt", CPU), ("cuda_debt", "NVIDIA"), ("ati_debt", "ATI")]
    standing = Standing(
        rec=section.number("rec", 0, 0, 1e15),
        ltd_secs=tuple(
            (kind, section.number(tag, 0, -MAX_SECS, MAX_SECS)) for tag, kind in debts if tag in section.leaves
        ),
    )
    return StateProject(
        section=section,
        url=url,
        name=section.text("project_name") or url,
        share=section.number("resource_share", 100, 0, MAX_SHARE),
        available=available,
        standing=standing,
        suspended=section.flag("suspended_via_gui"),
        no_new_tasks=section.flag("dont_request_more_work"),
        uses_dcf=not section.flag("dont_use_dcf"),
        dcf=section.number("duration_correction_factor", 1, 0, 1e6) or 1.0,
        contacts=_contacts(section),
    )


def _contacts(section: Section) -> Contacts:
    intervals = {
        interval.text("name"): interval.number("value", 0, 0, MAX_SECS)
        for interval in section.named("rsc_backoff_interval")
    }
    untils = {time.text("name"): time.number("value", 0, 0, MAX_SECS) for time in section.named("rsc_backoff_time")}
    allowed_at = section.number("min_rpc_time", 0, 0, MAX_SECS)
    failures = section.integer("nrpc_failures", 0, 0, 10**9)
    # After an RPC that succeeded, the next one is allowed when the server's delay is over.
    delay_secs = allowed_at - section.number("last_rpc_time", allowed_at, 0, MAX_SECS)
    kinds = [kind for tag in ("no_rsc_pref", "no_rsc_apps", "no_rsc_ams") for kind in section.texts(tag)]
    return Contacts(
        allowed_at=allowed_at,
        next_rpc_at=section.number("next_rpc_time", 0, 0, MAX_SECS),
        failures=min(failures, MAX_FAILURES),
        request_delay_secs=delay_secs if not failures and 0 < delay_secs <= REQUEST_DELAY_MAX_SECS else 0.0,
        backoffs={gpu_kind(name): (until, intervals.get(name, 0.0)) for name, until in untils.items()},
        not_asked=tuple(dict.fromkeys(map(gpu_kind, kinds)))[:MAX_KINDS],
    )


def _read_of_project(state: ClientState, section: Section) -> None:
    if not state.projects:
        raise section.error(section.name, "before_first_project")
    project = state.projects[-1]
    if section.name == "app":
        _read_app(project, section)
    elif section.name == "app_version":
        _read_version(project, section)
    elif section.name == "workunit":
        size = section.number("rsc_fpops_est", DEFAULT_JOB_FLOP, 0, MAX_FLOP)
        app = section.text("app_name")
        project.workunits[_required(section, "name")] = (app, max(size, MIN_JOB_FLOP))
        # Until it has run a task, a client uses the project's bound for its needs.
        if app in project.apps and "working_set" not in project.apps[app].section.leaves:
            bound = section.number("rsc_memory_bound", 0, 0, MAX_RAM_BYTES)
            project.apps[app].working_set_bytes = max(project.apps[app].working_set_bytes, bound)
    else:
        _read_result(state, project, section)


def _required(section: Section, tag: str) -> str:
    text = section.text(tag)
    if not text:
        raise section.error(tag, "value_missing")
    return text


def _read_app(project: StateProject, section: Section) -> None:
    name = _required(section, "name")
    if name in project.apps or len(project.apps) >= MAX_APPS:
        raise section.error("name", "app_twice", limit=MAX_APPS)
    size: Normal | None = None
    for fpops in section.named("fpops"):
        if "mean" not in fpops.leaves:
            raise fpops.error("mean", "mean_missing")
        size = Normal(
            fpops.number("mean", 0, MIN_JOB_FLOP, MAX_FLOP),
            fpops.number("std_dev", 0, 0, MAX_FLOP),
        )
    estimate = section.number("fpops_est", 0, MIN_JOB_FLOP, MAX_FLOP) if "fpops_est" in section.leaves else None
    latency = section.number("latency_bound", 0, 1, MAX_SECS) if "latency_bound" in section.leaves else None
    project.apps[name] = StateApp(
        section=section,
        name=name,
        non_cpu_intensive=section.flag("non_cpu_intensive") or project.section.flag("non_cpu_intensive"),
        weight=section.number("weight", 1, 0, 1e9),
        max_concurrent=section.integer("max_concurrent", 0, 0, MAX_INSTANCES),
        latency_secs=latency,
        estimate_flop=estimate,
        size=size,
        working_set_bytes=section.number("working_set", 0, 0, MAX_RAM_BYTES),
    )


def _read_version(project: StateProject, section: Section) -> None:
    app = project.apps.get(_required(section, "app_name"))
    if app is None:
        raise section.error("app_name", "unknown_app_name")
    if len(app.versions) >= MAX_VERSIONS:
        raise section.error("app_version", "too_many_versions", limit=MAX_VERSIONS)
    version = Version(
        flops=section.number("flops", 0, 0, MAX_FLOPS), cpus=section.number("avg_ncpus", 1, 0, MAX_INSTANCES)
    )
    for coproc in section.named("coproc"):
        kind, count = gpu_kind(_required(coproc, "type")), coproc.number("count", 1, 0, MAX_INSTANCES)
        if count > 0:
            version = replace(version, gpu=kind, gpus=count)
    if not version.gpu and version.cpus <= 0:
        raise section.error("avg_ncpus", "version_without_cpu")
    app.versions.append(
        StateVersion(
            section=section,
            version_num=section.integer("version_num", 0, 0, 10**9),
            platform=section.text("platform"),
            plan_class=section.text("plan_class"),
            version=version,
        )
    )


def _read_result(state: ClientState, project: StateProject, section: Section) -> None:
    workunit = project.workunits.get(_required(section, "wu_name"))
    if workunit is None:
        raise section.error("wu_name", "unknown_workunit_name")
    job = read_task(section, workunit[0], workunit[1])
    if job is None:
        return
    state.jobs_count += 1
    if state.jobs_count > MAX_JOBS:
        raise section.error("result", "too_many_tasks", limit=MAX_JOBS)
    project.jobs.append(job)
