"""The client of an emulated computer: its projects and jobs, and operations on them.

This holds the state and keeps it consistent; the limits of its processors and preferences are in
emulator.engine.capacity. emulator.engine.run moves time, emulator.engine.events.contact makes RPCs, and a policy
(emulator.engine.policy) decides.
"""

from __future__ import annotations

from typing import Final

from emulator.engine.availability import UpDown
from emulator.engine.capacity import Capacity
from emulator.engine.decisions import Choice
from emulator.engine.quirks import Quirks
from emulator.engine.random_numbers import random_stream
from emulator.engine.scenario import Scenario
from emulator.engine.server import Server
from emulator.engine.state import NEVER, Job, ProjectState
from emulator.engine.timeline.reasons import Reason
from emulator.engine.timeline.recorder import DecisionLog, Lanes, Recorder
from emulator.engine.timeline.results import DecisionKind

NEW_JOB_WEIGHT: Final = 0.1  # weight of a new job in its project's mean
BY_DEADLINE: Final = (Reason.GPU_DEADLINE, Reason.CPU_DEADLINE)


class Client(Capacity):
    """The client's state. Times are seconds from the start of the run."""

    def __init__(
        self, scenario: Scenario, seed: int, quirks: Quirks, recorder: Recorder | None, log: DecisionLog
    ) -> None:
        super().__init__(scenario, quirks)
        self.recorder = recorder
        self.log = log
        self.seed = seed
        self.now = 0.0
        kinds = len(self.kinds)
        self.server = Server(quirks, self.instances, self.up_fraction)
        self.all_projects = [ProjectState(index, project, kinds) for index, project in enumerate(scenario.projects)]
        for state in self.all_projects:
            state.server = UpDown(state.project.available, random_stream(seed, "server", state.index))
            state.draws = random_stream(seed, "jobs", state.index)
            state.error_draws = random_stream(seed, "errors", state.index)
            for app in state.project.apps:
                self.add_app(state, app)
        self.projects = [state for state in self.all_projects if state.attached]
        self.any_suspended = any(state.suspended for state in self.projects)
        self.running: list[Job] = []  # in order of their starts
        self.cpu_rate = 1.0  # below 1 while the CPUs are overcommitted; times a job's pace it is its rate
        self.longest_secs = [0.0] * kinds  # no present job's estimate is longer
        self.max_usage = [1.0] * kinds  # largest and smallest usage of any job so far
        self.min_usage = [1.0] * kinds
        self.beside = [0.0] * kinds  # per kind of GPU: most CPUs per instance that its jobs take
        self.uneven = False  # some job does not occupy one whole CPU and nothing else
        self.version = 0  # counts arrivals and ends
        self.arrivals = 0
        self.moves = 0  # counts jobs that stopped running
        self.slice_steps = 0  # steps of all simulations in time slices so far
        # Estimated instance-seconds of all unfinished jobs per kind, at a time, and how fast they are worked off.
        self.work = [0.0] * kinds
        self.work_at = [0.0] * kinds
        self.work_rate = [0.0] * kinds
        first = 0
        self.lanes = []
        for most in scenario.most_usable():
            self.lanes.append(Lanes(first, most))
            first += most

    # What policies ask.

    def can_ask(self, project: ProjectState, now: float) -> bool:
        """Whether it may be asked for work now: attached, neither it nor a job suspended, new tasks allowed, no RPC
        delay.
        """
        return (
            project.rpc_allowed_secs <= now
            and project.attached
            and not project.suspended
            and not project.no_new_tasks
            and not project.held
            and not (self.limited and self._has_enough(project, now))
        )

    def _has_enough(self, project: ProjectState, now: float) -> bool:
        """Whether it already has as many jobs as its limits let it run within the buffer."""
        return all(self.usable_secs(project, kind, now) <= 0.0 for kind, able in enumerate(project.can_supply) if able)

    def backed_off(self, project: ProjectState, kind: int, now: float) -> bool:
        """Whether the client must not yet ask that project for jobs of that kind."""
        return project.backoff_until_secs[kind] > now

    # Jobs.

    def arrive(self, job: Job) -> None:
        """Adds a job that has arrived."""
        kind = job.kind
        project = job.project
        project.waiting[kind].append(job)
        project.unfinished += 1
        estimate_secs, usage = job.estimate_secs, job.usage
        work_secs = estimate_secs * usage
        project.waiting_secs[kind] += work_secs
        self.work[kind] += work_secs
        weight = NEW_JOB_WEIGHT if project.job_secs else 1.0
        project.job_secs += (estimate_secs - project.job_secs) * weight
        project.job_flop += (estimate_secs * job.counted_flops - project.job_flop) * weight
        if estimate_secs > self.longest_secs[kind]:
            self.longest_secs[kind] = estimate_secs
        if job.cpus != 1.0 or kind:
            self.uneven = True
            self.max_usage[kind] = max(self.max_usage[kind], usage)
            self.min_usage[kind] = min(self.min_usage[kind], usage)
            if kind:
                self.beside[kind] = max(self.beside[kind], job.cpus / usage)
        self.version += 1
        self.arrivals += 1
        self.safe_until_secs = 0.0

    def work_secs(self, kind: int, now: float) -> float:
        """Estimated instance-seconds of all unfinished jobs of that kind, up to rounding."""
        return self.work[kind] - self.work_rate[kind] * (now - self.work_at[kind])

    def find_longest(self, kind: int) -> None:
        """Finds the longest estimate among the present jobs of that kind."""
        jobs = (job for project in self.projects for job in (*project.begun[kind], *project.waiting[kind]))
        self.longest_secs[kind] = max((job.estimate_secs for job in jobs), default=0.0)

    def next_end(self) -> float:
        """When the first running job ends."""
        return min([job.end_secs for job in self.running], default=NEVER)

    def jobs(self) -> list[Job]:
        """All unfinished jobs, in order of project, kind and start or arrival."""
        return [job for project in self.projects for job in project.jobs()]

    def apply(self, choice: Choice, now: float) -> None:
        """Applies the policy's choice: preempts other jobs, starts chosen ones that do not run, sets the CPUs'
        speed.
        """
        chosen = choice.jobs
        running = self.running
        count = len(running)
        if chosen[:count] == running:
            for place in range(count, len(chosen)):
                self._start(chosen[place], now, choice.reasons[place])
                running.append(chosen[place])
        else:
            chosen_ids = {job.id for job in chosen}
            for job in running:
                if job.id not in chosen_ids:
                    self.stop(job, now, Reason.PREEMPTED)
            self.running = running = [job for job in running if job.running]
            for job, reason in zip(chosen, choice.reasons, strict=True):
                if not job.running:
                    self._start(job, now, reason)
                    running.append(job)
        # Among the jobs that were running, mark those that continue because of their deadline.
        for job, reason in zip(chosen, choice.reasons, strict=True):
            if not job.by_deadline and reason in BY_DEADLINE:
                self.settle(job, now)
                job.by_deadline = True
        if self.uneven or len(running) > self.instances[0]:
            self.set_cpu_rate(now)

    def _begin(self, job: Job) -> None:
        """Moves a job from the unstarted ones to the begun ones."""
        project, kind = job.project, job.kind
        job.started = True
        waiting = project.waiting[kind]
        if waiting[0] is job:
            waiting.popleft()
        else:
            waiting.remove(job)
        # No rounding is carried on.
        project.waiting_secs[kind] = project.waiting_secs[kind] - job.estimate_secs * job.usage if waiting else 0.0
        project.begun[kind].append(job)

    def arrive_begun(self, job: Job, done_fraction: float) -> None:
        """Adds a job that was partly done before the start."""
        self.arrive(job)
        self._begin(job)
        job.before_secs = job.size_secs * done_fraction
        job.left = job.size_secs - job.before_secs
        job.left_at_error *= 1.0 - done_fraction  # it has not failed yet
        self.work[job.kind] -= job.estimate_secs * done_fraction * job.usage

    def _start(self, job: Job, now: float, reason: Reason) -> None:
        kind = job.kind
        project = job.project
        usage = job.usage
        if not job.started:
            self._begin(job)
        job.running = True
        job.by_deadline = reason in BY_DEADLINE
        job.rate = rate = self.cpu_rate * job.pace if kind == 0 else job.pace
        job.settled_secs = now
        self._will_end(job, now)
        job.lanes = self.lanes[kind].allocate(usage)
        self._load(job, rate, now)
        if not project.running:
            gap = now - project.gap_from_secs
            project.gap_cubes += gap * gap * gap
        project.running += 1
        self.log.add(now, DecisionKind.RUN, reason, project.index, job.id, kind)

    def _will_end(self, job: Job, now: float) -> None:
        job.end_secs = now + (job.left - job.left_at_error) / job.rate

    def _load(self, job: Job, rate: float, now: float) -> None:
        """Updates its project's load and the remaining work: the job is now faster by this much (slower if below 0)."""
        project, kind, usage = job.project, job.kind, job.usage
        project.busy[kind] += usage * rate
        if kind:
            project.busy[0] += job.cpus * rate
        project.busy_flops += job.counted_flops * rate
        work_at = self.work_at
        if now > work_at[kind]:
            self.work[kind] -= self.work_rate[kind] * (now - work_at[kind])
            work_at[kind] = now
        self.work_rate[kind] += rate * usage * job.bias

    def settle(self, job: Job, now: float) -> None:
        """Books the work of a running job since it was last settled."""
        start = job.settled_secs
        if now <= start:
            return
        done = (now - start) * job.rate
        left = job.left - done
        job.left = left if left > 0.0 else 0.0
        project = job.project
        project.instance_secs[job.kind] += done * job.usage
        if job.kind:
            project.instance_secs[0] += done * job.cpus
        project.used_flop += done * job.counted_flops
        job.settled_secs = now
        if self.recorder is not None:
            self.recorder.block(job, start, now)

    def stop(self, job: Job, now: float, reason: Reason) -> None:
        """Stops a running job; it stays in its project's lists, and the caller removes it from `running`."""
        self.settle(job, now)
        project = job.project
        self._load(job, -job.rate, now)
        self.moves += 1
        job.running = False
        job.rate = 0.0
        job.end_secs = NEVER
        self.lanes[job.kind].release(job.lanes, job.usage)
        project.running = still_running = project.running - 1
        if not still_running:
            project.gap_from_secs = now
            project.busy = [0.0] * len(project.busy)  # no rounding is carried on
            project.busy_flops = 0.0
        if reason is not Reason.NONE:
            self.log.add(now, DecisionKind.STOP, reason, project.index, job.id, job.kind)

    def finish(self, job: Job, now: float) -> None:
        """Ends a running job, finished or failed: it leaves the lists and waits to be reported."""
        self.stop(job, now, Reason.NONE)
        job.left = job.left_at_error
        job.done = True
        self.running.remove(job)
        project = job.project
        kind = job.kind
        begun = project.begun[kind]
        begun.remove(job)
        project.unfinished -= 1
        self.version += 1
        if job.left_at_error:
            self.work[kind] -= job.left_secs(now) * job.usage
            project.failed += 1
            project.wasted_flop += job.spent_flop
            return
        late_secs = now - job.deadline_secs
        if late_secs <= 0.0:
            self.log.add(now, DecisionKind.END, Reason.JOB_MET, project.index, job.id, kind)
        elif self.quirks.wasted_when_reported:
            self.log.add(now, DecisionKind.END, Reason.JOB_LATE, project.index, job.id, kind, late_secs)
        else:
            self.judge_late(job, now, Reason.JOB_LATE)

    def judge_late(self, job: Job, now: float, reason: Reason) -> None:
        """Counts a job as late: the work done for it is wasted."""
        project = job.project
        project.late += 1
        project.wasted_flop += job.spent_flop
        if self.recorder is not None:
            self.recorder.miss(now, job)
        self.log.add(now, DecisionKind.END, reason, project.index, job.id, job.kind, now - job.deadline_secs)

    def judge_rest(self, now: float) -> None:
        """At the end of the run, with all jobs settled, counts those as late that can no longer be reported in time."""
        if self.quirks.wasted_when_reported:
            return
        for project in self.projects:
            for job in project.ready:
                if 0.0 < job.end_secs <= job.deadline_secs < now and not job.left_at_error:
                    self.judge_late(job, now, Reason.JOB_UNREPORTED)
        for job in self.jobs():
            if job.deadline_secs < now:
                self.judge_late(job, now, Reason.JOB_UNFINISHED)

    def set_cpu_rate(self, now: float) -> None:
        """Where CPU jobs use more CPUs than GPU jobs leave, slows all of them equally (section 3)."""
        beside = own = 0.0
        for job in self.running:
            if job.kind:
                beside += job.cpus
            else:
                own += job.cpus
        free = max(self.instances[0] - beside, 0.01)
        rate = free / own if own > free else 1.0
        if rate != self.cpu_rate:
            self.cpu_rate = rate
            self.follow_rates(now)

    def follow_rates(self, now: float) -> None:
        """Lets running jobs continue at their pace; CPU jobs are slowed while the CPUs are overcommitted."""
        for job in self.running:
            its_rate = job.pace if job.kind else self.cpu_rate * job.pace
            if job.rate != its_rate:
                self.settle(job, now)
                self._load(job, its_rate - job.rate, now)
                job.rate = its_rate
                self._will_end(job, now)

    def give_up(self, jobs: list[Job], now: float, reason: Reason) -> None:
        """Forgets jobs; they count as neither met nor late."""
        for job in jobs:
            if job.running:
                self.stop(job, now, reason)
            job.done = True
            project, kind = job.project, job.kind
            self.work[kind] -= job.left_secs(now) * job.usage
            if job.started:
                project.begun[kind].remove(job)
            else:
                project.waiting[kind].remove(job)
                project.waiting_secs[kind] -= job.estimate_secs * job.usage
            project.unfinished -= 1
            if not project.begun[kind] and not project.waiting[kind]:
                project.waiting_secs[kind] = 0.0
        self.running = [job for job in self.running if job.running]
        self.version += 1

    def drop(self, project: ProjectState, now: float, reason: Reason) -> list[Job]:
        """Forgets all its jobs; they count as neither met nor late."""
        dropped = project.jobs()
        self.give_up(dropped, now, reason)
        return dropped

    def recalculate(self, now: float) -> None:
        """Recomputes all sums and ends, after jobs were made longer or shorter; running jobs must be settled."""
        for project in self.all_projects:
            project.busy_flops = 0.0
            for kind, waiting in enumerate(project.waiting):
                project.waiting_secs[kind] = sum(job.estimate_secs * job.usage for job in waiting)
        for kind in range(len(self.kinds)):
            self.work[kind] = self.work_rate[kind] = 0.0
            self.work_at[kind] = now
            self.find_longest(kind)
        for job in self.jobs():
            self.work[job.kind] += job.left_secs(now) * job.usage
        for job in self.running:
            job.project.busy_flops += job.counted_flops * job.rate
            self.work_rate[job.kind] += job.rate * job.usage * job.bias
            self._will_end(job, now)
