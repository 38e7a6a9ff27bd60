"""The client's present state: its jobs and projects.

Policies read these objects, too: see emulator.engine.policy.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from emulator.engine.scenario import App, Project, Version

if TYPE_CHECKING:
    import random

    from emulator.engine.availability import UpDown

NEVER = float("inf")


class Job:
    """A job the client has. Durations are run times at full speed.

    Estimates: the client blends the server's estimate with an extrapolation from elapsed time and fraction done,
    weighted by the fraction done: (1-f) * estimate + f * (elapsed / f) - elapsed = (1-f) * estimate. So the estimated
    remaining time falls linearly from the estimate to 0, which it reaches when the job ends.
    """

    def __init__(self, number: int, offer: Offer, size_secs: float, estimate_secs: float) -> None:
        self.id = number  # counts up in order of arrival, over all projects
        self.project = offer.project
        self.app = offer.app
        self.kind = offer.kind  # of processor
        self.usage = offer.usage  # instances of that kind it occupies (CPUs for a CPU job)
        self.cpus = offer.cpus  # CPUs it occupies; for a GPU job those beside its GPU
        self.counted_flops = offer.counted_flops  # its counted FLOPS while it runs: the peak of all devices it occupies
        self.size_secs = size_secs  # real run time; no policy may read it
        self.estimate_secs = estimate_secs  # estimated run time of the whole job
        self.pace = offer.pace  # the fraction of the time in which the CPU limit lets it run
        self.bias = estimate_secs / size_secs
        self.left = size_secs  # real run time left at settled_secs
        self.before_secs = 0.0  # the part of its run time done before the start
        self.rate = 0.0  # run time per second: 0, its pace, or less where CPUs are overcommitted
        self.left_at_error = 0.0  # real run time left when it fails; 0: it does not. No policy may read it
        self.settled_secs = 0.0
        self.arrived_secs = 0.0
        self.deadline_secs = 0.0
        self.slice_end_secs = 0.0  # of the present time slice; set by the policy (kernel.choice)
        self.end_secs = NEVER
        self.started = False  # it has run before, or runs
        self.running = False
        self.done = False
        self.by_deadline = False  # it was last started for its deadline
        self.changed_flop = 0.0  # the part of the counted FLOP spent so far that the present speeds do not explain
        self.lanes: tuple[int, ...] = ()

    @property
    def spent_flop(self) -> float:
        """Counted FLOP spent on it in this run, until it was last settled."""
        return (self.size_secs - self.before_secs - self.left) * self.counted_flops + self.changed_flop

    def run_faster(self, times: float) -> None:
        """Makes it run this many times as fast from now on; it must be settled."""
        self.left /= times
        self.before_secs /= times
        self.left_at_error /= times
        self.size_secs /= times
        self.estimate_secs /= times

    def left_secs(self, now: float) -> float:
        """Estimated run time left."""
        return (self.left - (now - self.settled_secs) * self.rate) * self.bias  # its rate is 0 unless it runs


class AppState:
    """An application as its server sees it."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.most_at_once = 0  # concurrent jobs, by its limit or by the RAM; 0 for any number
        self.all_offers: list[Offer] = []  # for kinds of processor that it has at some time
        self.offers: list[Offer] = []  # the versions for which the server may send jobs now


class Offer:
    """A version that this computer can run: the devices that one of its jobs occupies, and its counted FLOPS."""

    def __init__(
        self,
        project: ProjectState,
        app: AppState,
        number: int,
        version: Version,
        kind: int,
        instance_flops: list[float],
        cpu_limit: float = 1.0,
    ) -> None:
        self.project = project
        self.app = app
        self.number = number
        self.kind = kind
        self.flops = version.flops
        self.cpus = version.cpus
        self.usage = version.gpus if kind else version.cpus
        self.limit(cpu_limit)
        self.barred = 0  # the devices of its kind that its jobs may not use, as bits
        self.too_large = False  # its jobs never fit into the RAM that preferences allow, so the server sends none
        self.count_at(instance_flops)

    def limit(self, cpu_limit: float) -> None:
        """Sets the pace of its jobs; the client throttles only those of whole CPUs."""
        self.pace = cpu_limit if self.cpus >= 1 else 1.0

    def count_at(self, instance_flops: list[float]) -> None:
        """Sets the counted FLOPS of its jobs: the peak of all devices that one occupies."""
        self.counted_flops = self.cpus * instance_flops[0]
        if self.kind:
            self.counted_flops += self.usage * instance_flops[self.kind]


class ProjectState:
    """A project: the client's record of it, its jobs, and the work done for it."""

    def __init__(self, index: int, project: Project, kinds: int) -> None:
        self.index = index  # stays the same for the whole run
        self.project = project
        self.name = project.name
        self.share = project.share
        self.attached = project.attached
        self.suspended = project.suspended
        self.no_new_tasks = project.no_new_tasks
        self.has_work = project.has_work
        self.forced_down = False
        self.apps: list[AppState] = []
        self.can_supply = [False] * kinds  # per kind: it has an application for it
        self.most_used = [NEVER] * kinds  # per kind: instances that its limits let its jobs occupy
        # Unfinished jobs, per kind of processor.
        self.unfinished = 0  # waiting and begun, of all kinds
        self.waiting: list[deque[Job]] = [deque() for _ in range(kinds)]  # never started, in order of arrival
        self.begun: list[list[Job]] = [[] for _ in range(kinds)]  # running or preempted, in order of their starts
        self.waiting_secs = [0.0] * kinds  # estimated instance-seconds of `waiting`
        self.ready: list[Job] = []  # finished, not yet reported
        self.report_at_secs = NEVER  # when it is contacted to report, or because it asked for that
        self.held = 0  # jobs that the owner suspended
        # Running means of its jobs' estimates in which later jobs count more. 0 before the first.
        self.job_secs = 0.0
        self.job_flop = 0.0  # counted FLOP
        self.running = 0
        self.busy = [0.0] * kinds  # instances its running jobs occupy (of GPU jobs the CPUs too)
        self.busy_flops = 0.0  # counted FLOPS of its running jobs; slowed CPU jobs count for as much less
        # RPCs.
        self.rpc_allowed_secs = 0.0  # no RPC before, because of its own delay or of RPC failures
        self.failures = 0  # of RPCs and jobs since it last answered
        self.master_fetches = 0
        self.backoff_until_secs = [0.0] * kinds  # per kind: after an unsuccessful request, not asked again before that
        self.backoff_interval_secs = [0.0] * kinds  # per kind: 0 if the last request brought a job
        self.server: UpDown
        self.draws: random.Random
        self.error_draws: random.Random  # decides which jobs fail
        # Accounts.
        self.used_flop = 0.0
        self.wasted_flop = 0.0
        self.instance_secs = [0.0] * kinds
        self.sent = self.met = self.late = self.failed = self.rpcs = 0
        self.gap_from_secs = 0.0  # since when none of its jobs runs
        self.gap_cubes = 0.0  # of the gaps so far

    def jobs(self) -> list[Job]:
        """Its unfinished jobs, in order of kind and start or arrival."""
        rows = zip(self.begun, self.waiting, strict=True)
        return [job for begun, waiting in rows for job in (*begun, *waiting)]
