"""The round-robin simulation: a forecast for the present jobs if the client ran them by weighted round-robin. All later
policies start from it (client scheduling document; emulator document, section 7).

Its results are, per kind of processor, the idle instances now, the time up to which all are busy ("saturated"), and the
shortfall up to the end of the buffer; and which jobs would miss their deadline. A second simulation of those, by
earliest deadline, gives the time for which all instances are busy with them ("busy time").

The first results need no time slices: jobs are assigned to the instances in the order in which round-robin picks
them, with a sort and one heap operation per job. A job that uses several instances is assigned as that many equal
pieces, a job that uses part of one as one shorter piece. Time slices are simulated only if a job may miss its
deadline, and only as far as needed. Usually a bound rules that out: whatever the order, as long as no instance idles
while a job waits for it, all jobs are done after (work / instances + longest job).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heapreplace
from itertools import accumulate
from operator import itemgetter
from typing import Final

from emulator.engine.client import Client
from emulator.engine.policies.rr_slices import LATE, RoundRobinSlices
from emulator.engine.state import NEVER, Job, ProjectState

_first = itemgetter(0)
# The soonest that a choice is made again: a job with less time to spare runs for its deadline now.
MIN_MARGIN_SECS: Final = 60.0
SLACK_SECS: Final = 1.0  # the sum of work is kept up to date with rounding errors


@dataclass(slots=True)
class SimulationResult:
    """The simulation's results, per kind; times in seconds from now."""

    idle: list[float]
    saturated_secs: list[float]
    shortfall_secs: list[float]


class RoundRobinSimulation:
    """Simulates for one policy.

    `rank` is a project's priority (smaller is first), and `unit` by how much it grows per counted FLOP done for
    the project.
    """

    def __init__(
        self, client: Client, rank: Callable[[ProjectState], float], unit: Callable[[ProjectState], float]
    ) -> None:
        self._client = client
        self._rank = rank
        self._unit = unit
        self._kinds = range(len(client.kinds))
        self._simulated_at: tuple[float, int, float] | None = None
        self._result = SimulationResult([], [], [])
        self._judged_at: tuple[float, int] | None = None
        self._missed: list[list[Job]] = []
        self._ends: dict[int, float] = {}  # when jobs end in the last simulation
        self.margins: list[tuple[float, Job]] = []  # jobs that may miss their deadline but do not, and their slack

    # Bounds, in constant time.

    def min_saturated_secs(self, kind: int, now: float) -> float:
        """A time up to which all instances of that kind are certainly busy, or 0. With jobs assigned to n instances, no
        two of these differ by more than the longest job."""
        client = self._client
        if not client.present[kind]:
            return NEVER
        if client.any_suspended:
            return 0.0
        work_secs = client.work_secs(kind, now) / client.instances[kind] - client.longest_secs[kind] - SLACK_SECS
        return work_secs / client.up_fraction[kind] if work_secs > 0.0 else 0.0

    def may_miss_deadlines(self, now: float) -> bool:
        """Whether any job might miss its deadline; False is certain.

        The answer stays valid: the bound moves to a later time only when a job arrives, and then the client
        resets `safe_until_secs`.
        """
        client = self._client
        if now < client.safe_until_secs:
            return False
        safe_until = NEVER
        early = client.buffer_min_secs if client.quirks.buffer_before_deadline else MIN_MARGIN_SECS
        for kind in self._kinds:
            heap = client.deadlines[kind]
            while heap and heap[0][2].done:
                heappop(heap)
            if not heap:
                continue
            first_deadline = heap[0][0] - early
            done_secs = self._all_done_secs(kind, now)
            if now + done_secs > first_deadline:
                client.find_longest(kind)  # the longest may be gone
                done_secs = self._all_done_secs(kind, now)
                if now + done_secs > first_deadline:
                    return True
            safe_until = min(safe_until, first_deadline - done_secs - SLACK_SECS)
        client.safe_until_secs = safe_until
        return False

    def _all_done_secs(self, kind: int, now: float) -> float:
        """A time after which all jobs of that kind are certainly done, in whatever order they run."""
        client = self._client
        n = client.instances[kind]
        longest = client.longest_secs[kind]
        if client.uneven:
            most, least = client.max_usage[kind], client.min_usage[kind]
            if kind:
                # While a job of the largest usage waits, this many instances are busy at least.
                n = max(n - most + min(1.0, least), least)
            else:
                n -= client.cpus_beside()
                if n <= 1e-9:
                    return NEVER
                longest *= 1 + most / n  # CPUs are overcommitted by one job, and all are slowed
        latest = client.work_secs(kind, now) / n + longest + SLACK_SECS
        return latest / client.up_fraction[kind]

    # Results.

    def result(self, now: float, horizon_secs: float) -> SimulationResult:
        """Idle instances, saturated times, and shortfalls up to the horizon."""
        key = (now, self._client.version, horizon_secs)
        if self._simulated_at != key:
            self._simulated_at = key
            self._result = self._assigned(now, horizon_secs)
        return self._result

    def missed(self, now: float) -> list[list[Job]]:
        """Per kind, the jobs that would miss their deadline, by deadline."""
        key = (now, self._client.version)
        if self._judged_at != key:
            self._judged_at = key
            self._missed = self._judge(now)
            self._follow_quirks(self._missed)
        return self._missed

    def _judge(self, now: float) -> list[list[Job]]:
        client = self._client
        missed: list[list[Job]] = [[] for _ in self._kinds]
        self.margins = []
        early = client.buffer_min_secs if client.quirks.buffer_before_deadline else MIN_MARGIN_SECS
        endangered: list[Job] = []
        for kind in self._kinds:
            bound = now + self._all_done_secs(kind, now)
            for project in client.with_jobs[kind]:
                if project.suspended:
                    continue
                for jobs in (project.begun[kind], project.waiting[kind]):
                    for job in jobs:
                        if job.deadline_secs - early < bound:
                            endangered.append(job)
        if not endangered:
            return missed
        slices = RoundRobinSlices(client, self._rank, self._unit, now, early)
        slices.go_on(endangered, to_last_deadline=client.quirks.no_edf_simulation)
        self._ends = slices.ends
        client.slice_steps += slices.steps
        for job in endangered:
            end = slices.ends.get(job.id, NEVER)
            if end > job.deadline_secs - early + LATE:
                missed[job.kind].append(job)
            else:
                self.margins.append((job.deadline_secs - early - end, job))
        for jobs in missed:
            jobs.sort(key=_by_deadline)
        return missed

    def _follow_quirks(self, missed: list[list[Job]]) -> None:
        """BOINC's rules beyond the text: jobs that ran for their deadline stay so while their project has misses,
        and as many jobs run for their deadline as the project has misses, its earliest, missed or not."""
        quirks = self._client.quirks
        if not quirks.jobs_kept_by_deadline and not quirks.overcounted_misses:
            return
        for kind, jobs in enumerate(missed):
            projects = {job.project.index: job.project for job in jobs}
            for project in projects.values():
                if quirks.jobs_kept_by_deadline:
                    jobs += [job for job in project.begun[kind] if job.by_deadline and job not in jobs]
                if quirks.overcounted_misses:
                    count = sum(job.project is project for job in jobs)
                    earliest = sorted([*project.begun[kind], *project.waiting[kind]], key=_by_deadline)[:count]
                    jobs[:] = [job for job in jobs if job.project is not project] + earliest
            jobs.sort(key=_by_deadline)

    def busy_secs(self, now: float) -> list[float]:
        """Per kind, how long all instances are busy with the jobs that would miss their deadlines, run by
        earliest deadline: no new job can start before."""
        client = self._client
        if not self.may_miss_deadlines(now):
            return [0.0] * len(client.kinds)
        busy = []
        piled = client.quirks.no_edf_simulation
        for kind, jobs in enumerate(self.missed(now)):
            if piled:
                jobs = sorted(jobs, key=lambda job: self._ends.get(job.id, NEVER))
            loads = [0.0] * int(client.instances[kind])
            for job in jobs:
                secs = job.left_secs(now) / client.up_fraction[kind]
                for _ in range(max(0 if piled else 1, int(job.usage))):
                    heapreplace(loads, loads[0] + secs)
            busy.append(loads[0] if loads else 0.0)
        return busy

    def urgent_secs(self, project: ProjectState, now: float) -> list[float]:
        """Per kind, how long all instances together take for the project's jobs that cannot wait for a new one: if it
        ran first, they would miss their deadlines."""
        client = self._client
        urgent = []
        for kind in self._kinds:
            up = client.up_fraction[kind]
            work_secs = 0.0
            for job in (*project.begun[kind], *project.waiting[kind]):
                secs = job.left_secs(now)
                if now + (project.job_secs + secs) / up > job.deadline_secs:
                    work_secs += secs * job.usage
            urgent.append(work_secs / client.instances[kind] / up)
        return urgent

    # Without time slices.

    def _assigned(self, now: float, horizon_secs: float) -> SimulationResult:
        client = self._client
        idle, saturated, shortfall = [], [], []
        beside = 0.0  # CPUs that GPU jobs take
        for kind in reversed(self._kinds):
            if not client.present[kind]:
                idle.append(0.0)
                saturated.append(NEVER)
                shortfall.append(0.0)
                continue
            up = client.up_fraction[kind]
            horizon = horizon_secs * up
            n = client.instances[kind]
            if not kind and beside:
                n = max(1.0, float(int(n - beside + 1e-9)))
            loads = [0.0] * int(n)
            if client.uneven:
                wanted, cpus = self._assign_pieces(kind, now, loads, horizon)
                beside += cpus
                free = max(0.0, n - wanted)
            else:
                _assign(self._alike_in_order(kind, now), loads, horizon, client.work_secs(kind, now))
                free = float(loads.count(0.0))
            idle.append(free)
            saturated.append(loads[0] / up if free <= 1e-9 else 0.0)
            short = sum([horizon - load for load in loads if load < horizon])
            shortfall.append(max(short, free * horizon if free < 1.0 else 0.0) / up)
        return SimulationResult(idle[::-1], saturated[::-1], shortfall[::-1])

    def _assign_pieces(self, kind: int, now: float, loads: list[float], horizon: float) -> tuple[float, float]:
        """Assigns jobs that do not all use one whole instance. Returns how many instances all of them want, and how
        many CPUs those take that run first."""
        wanted = cpus = 0.0
        n = self._client.instances[kind]
        for _, secs, job in self._in_order(kind, now):
            if kind and wanted < n:
                cpus += job.cpus
            usage = job.usage
            wanted += usage
            if usage == 1.0:
                heapreplace(loads, loads[0] + secs)
            else:
                pieces = max(1, math.ceil(usage - 1e-9))
                for _ in range(pieces):
                    heapreplace(loads, loads[0] + secs * usage / pieces)
            if loads[0] >= horizon and wanted >= n:
                break
        return wanted, cpus

    def _alike_in_order(self, kind: int, now: float) -> list[tuple[float, float]]:
        """As `_in_order`, without the jobs, if all count for the same FLOPS."""
        picks: list[tuple[float, float]] = []
        projects = 0
        for project in self._client.with_jobs[kind]:
            if project.suspended:
                continue
            begun, waiting = project.begun[kind], project.waiting[kind]
            projects += 1
            rank, unit = self._start(project)
            cost = unit * (begun or waiting)[0].counted_flops
            # Job.left_secs, without a call for each.
            secs = [(job.left - (now - job.settled_secs) * job.rate) * job.bias for job in begun]
            secs += project.waiting_estimates[kind]
            picks += zip(accumulate([cost * each for each in secs], initial=rank), secs, strict=False)
        if projects > 1:
            picks.sort(key=_first)
        return picks

    def _start(self, project: ProjectState) -> tuple[float, float]:
        """A project's rank before the first pick, and by how much it grows per counted FLOP."""
        if self._client.quirks.last_project_first:
            return float(-project.index), 0.0
        return self._rank(project), self._unit(project)

    def _in_order(self, kind: int, now: float) -> list[tuple[float, float, Job]]:
        """Jobs with their durations, in the order in which round-robin picks them: always one of the project whose
        priority is then the highest. A project's rank grows with what was picked of it, so sorting by the rank at
        each pick is the same."""
        client = self._client
        picks: list[tuple[float, float, Job]] = []
        pick = picks.append
        projects = 0
        for project in client.with_jobs[kind]:
            if project.suspended:
                continue
            begun, waiting = project.begun[kind], project.waiting[kind]
            projects += 1
            rank, unit = self._start(project)
            for job in begun:  # Job.left_secs, without a call for each
                secs = (job.left - (now - job.settled_secs) * job.rate) * job.bias
                pick((rank, secs, job))
                rank += unit * job.counted_flops * secs
            for job in waiting:
                secs = job.estimate_secs
                pick((rank, secs, job))
                rank += unit * job.counted_flops * secs
        if projects > 1:
            picks.sort(key=_first)
        return picks


def _assign(picks: list[tuple[float, float]], loads: list[float], horizon: float, work_secs: float) -> None:
    """Assigns each job to the instance that is free first, until all are busy up to the horizon. `work_secs` is the
    sum, except for rounding."""
    if work_secs + SLACK_SECS < horizon * len(loads):  # then they will not all be busy up to it
        for _, secs in picks:
            heapreplace(loads, loads[0] + secs)
        return
    for _, secs in picks:
        least = loads[0]
        if least >= horizon:
            return
        heapreplace(loads, least + secs)


def _by_deadline(job: Job) -> tuple[float, bool, int]:
    return (job.deadline_secs, not job.started, job.id)
