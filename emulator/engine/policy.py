"""What a scheduling policy is: which jobs run, when which project is asked for how much work.

The client (emulator.engine.client) owns time, jobs, processors and RPCs; a policy owns its accounts (REC, debts)
and decides. Three generations of BOINC's policy fit: the debts of 2005 with fixed periods, the long-term debts of
the 6.6 client, and REC.

Order of calls. `begin` once. Then, at each instant at which something happens: `accrue` before anything changes
(what runs has been running unchanged since the last call); the changes, each told by one of the `*_changed`
and `job_*` calls; `choose` if what runs may have to change; then `fetch`. Processor kinds are indexes into
`client.kinds`; 0 is the CPU. Times are seconds from the start of the run.

The views are read-only: a policy reads what the client shows and keeps its own things in itself, by
`project.index` and `job.id`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from emulator.engine.timeline.reasons import Reason


class JobView(Protocol):
    """A job the client has. Durations are run times at full speed, as estimated; a policy never sees the real size."""

    @property
    def id(self) -> int: ...  # counts up in order of arrival, over all projects
    @property
    def project(self) -> ProjectView: ...
    @property
    def kind(self) -> int: ...  # the kind of processor it is for
    @property
    def usage(self) -> float: ...  # instances of that kind it occupies (CPUs for a CPU job)
    @property
    def cpus(self) -> float: ...  # CPUs it occupies; for a GPU job those beside its GPU
    @property
    def counted_flops(self) -> float: ...  # what it counts for while it runs: peak FLOPS of all it occupies
    @property
    def estimate_secs(self) -> float: ...  # estimated run time of the whole job
    @property
    def arrived_secs(self) -> float: ...
    @property
    def deadline_secs(self) -> float: ...
    @property
    def started(self) -> bool: ...  # it has run before, or runs
    @property
    def running(self) -> bool: ...
    @property
    def since_secs(self) -> float: ...  # start of its present stretch, while it runs
    @property
    def by_deadline(self) -> bool: ...  # it was last started for its deadline

    def left_secs(self, now: float) -> float:
        """Estimated run time left."""
        ...


class ProjectView(Protocol):
    """A project as the client knows it. Its lists hold its unfinished jobs only."""

    @property
    def index(self) -> int: ...  # stays the same for the whole run
    @property
    def name(self) -> str: ...
    @property
    def share(self) -> float: ...
    @property
    def attached(self) -> bool: ...
    @property
    def suspended(self) -> bool: ...
    @property
    def no_new_tasks(self) -> bool: ...
    @property
    def waiting(self) -> Sequence[Sequence[JobView]]: ...  # per kind: never started, in order of arrival
    @property
    def begun(self) -> Sequence[Sequence[JobView]]: ...  # per kind: running or preempted, in order of their starts
    @property
    def unfinished(self) -> int: ...  # how many waiting and begun, of all kinds
    @property
    def waiting_secs(self) -> Sequence[float]: ...  # per kind: estimated instance-seconds of `waiting`
    @property
    def busy(self) -> Sequence[float]: ...  # per kind: instances its running jobs occupy (of GPU jobs the CPUs too)
    @property
    def busy_flops(self) -> float: ...  # counted FLOPS of its running jobs, slowed CPU jobs by as much less
    @property
    def can_supply(self) -> Sequence[bool]: ...  # per kind: it has an application for it
    @property
    def rpc_allowed_secs(self) -> float: ...  # no RPC before (its own delay, or RPC failures)
    @property
    def backoff_until_secs(self) -> Sequence[float]: ...  # per kind: asked in vain, not asked again before
    @property
    def backoff_interval_secs(self) -> Sequence[float]: ...  # per kind: 0 when the last request brought a job


class ClientView(Protocol):
    """The client: its processors, projects, preferences and running jobs."""

    @property
    def kinds(self) -> Sequence[str]: ...  # names; [0] is "CPU"
    @property
    def instances(self) -> Sequence[float]: ...  # per kind: what preferences let jobs use
    @property
    def instance_flops(self) -> Sequence[float]: ...  # per kind: counted FLOPS of one instance
    @property
    def host_flops(self) -> float: ...  # counted FLOPS of all usable instances of all kinds
    @property
    def projects(self) -> Sequence[ProjectView]: ...  # the attached ones, by index
    @property
    def running(self) -> Sequence[JobView]: ...  # in order of their starts
    @property
    def kind_active(self) -> Sequence[bool]: ...  # per kind: jobs may run on it now (on, active, GPU active)
    @property
    def period_secs(self) -> float: ...  # scheduling period
    @property
    def buffer_min_secs(self) -> float: ...
    @property
    def buffer_total_secs(self) -> float: ...

    def can_ask(self, project: ProjectView, now: float) -> bool:
        """Whether it may be asked for work now: attached, not suspended, new tasks allowed, no RPC delay."""
        ...

    def backed_off(self, project: ProjectView, kind: int, now: float) -> bool:
        """Whether the (project, kind) back-off is on."""
        ...


@dataclass(slots=True)
class Choice:
    """The jobs to run from now on, all of them: what runs and is not listed is preempted.

    Together they must fit: per GPU kind at most its instances; CPU jobs may overcommit the CPUs (they are then
    slowed). `reasons[i]` says why `jobs[i]`. If nothing else happens, `choose` is called again at
    `look_again_secs` (end of a time slice or period; infinity for never). `jobs` may be `client.running` itself:
    nothing changes, but that a job `added` beside starts, for the last of the reasons.
    """

    jobs: Sequence[JobView]
    reasons: Sequence[Reason]
    look_again_secs: float
    added: JobView | None = None


@dataclass(slots=True)
class WorkRequest:
    """What a project is asked for: per kind, instance-seconds and instances to fill. Both 0: not asked for.

    `delays_secs` per kind: how long new jobs surely wait before they can start, which the server adds to a job's
    run time when it checks its deadline (the modern policy's busy time; older clients send none).
    """

    project: ProjectView
    secs: list[float]
    instances: list[float]
    reason: Reason
    delays_secs: list[float] | None = None


@dataclass(slots=True)
class Fetch:
    """Whom to ask for work now, if anybody; else when to look again should nothing happen until then."""

    request: WorkRequest | None
    look_again_secs: float


class Policy(Protocol):
    """A scheduling policy. One object serves one run."""

    @property
    def name(self) -> str: ...
    @property
    def uses_backoffs(self) -> bool:
        """Whether the client keeps back-offs per (project, kind): 6.6 and later. Without, a project that was asked
        and sent nothing gets an RPC delay for everything."""
        ...

    def begin(self, client: ClientView) -> None:
        """The run begins, at time 0; the client has its first projects and jobs."""

    def accrue(self, now: float) -> None:
        """Time has passed until now with the jobs in `client.running`; book it."""

    def projects_changed(self, now: float) -> None:
        """A project was attached or left, a share, a suspension or the buffer changed, an application came."""

    def job_arrived(self, job: JobView, now: float) -> None:
        """It is in its project's lists already."""

    def job_ended(self, job: JobView, now: float) -> None:
        """It is finished (or dropped) and in no list any more."""

    def choose(self, now: float) -> Choice:
        """Which jobs run. Called when a job ended or arrived, a kind became active, or at `look_again_secs`."""
        ...

    def fetch(self, now: float) -> Fetch:
        """Whom to ask. Called after each change and at `look_again_secs`, when an RPC is possible."""
        ...

    def ask_along(self, project: ProjectView, now: float) -> WorkRequest | None:
        """What to ask a project for that is being contacted anyway, to report jobs. None: nothing."""
        ...

    def rpc_done(self, request: WorkRequest, got: Sequence[int], now: float) -> None:
        """The reply to a request: jobs got per kind. Back-offs are already set; `job_arrived` was called for each."""

    def standing(self, project: ProjectView, now: float) -> float:
        """The number that the policy ranks the project by, for charts: REC in credit per day, or debt in seconds."""
        ...
