"""What the present jobs would do if the client went on by weighted round-robin: the simulation that all later
policies start from (client scheduling document; emulator document, section 7).

It tells per kind of processor the idle instances now, the time up to which all are busy ("saturated"), and the
shortfall up to the end of the buffer; and which jobs would miss their deadline. A second simulation of those, by
earliest deadline, tells how long all instances are busy with them ("busy time").

Two ways lead to it. Jobs that occupy one whole instance and are in no danger are dealt to the instances without
preemption, in the order in which round-robin picks them: a sort and one heap operation per job. Otherwise the time
slices are gone through. Danger is excluded by a bound that holds for every order in which no instance idles while
jobs wait: all are done after (work / instances + longest job).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heapreplace
from typing import TYPE_CHECKING, Final

from emulator.engine.client import Client
from emulator.engine.state import NEVER, Job, ProjectState

if TYPE_CHECKING:
    from emulator.engine.policy import ProjectView

LATE: Final = 1e-6  # a job late by less is not: rounding
SLACK_SECS: Final = 1.0  # the sum of work is kept up to date with rounding errors
LONGEST_STEP_PARTS: Final = 10  # a step beyond ten slices is a tenth of the next end


@dataclass(slots=True)
class Outlook:
    """The simulation's results, per kind; times in seconds from now."""

    idle: list[float]
    saturated_secs: list[float]
    shortfall_secs: list[float]


class Forecast:
    """Simulates for one policy.

    `rank` tells a project's priority (smaller is first) and `unit` by how much it grows per counted FLOP done for
    the project.
    """

    def __init__(
        self, client: Client, rank: Callable[[ProjectView], float], unit: Callable[[ProjectView], float]
    ) -> None:
        self._client = client
        self._rank = rank
        self._unit = unit
        self._kinds = range(len(client.kinds))
        self._looked: tuple[float, int, float] | None = None
        self._outlook = Outlook([], [], [])
        self._judged: tuple[float, int] | None = None
        self._missed: list[list[Job]] = []
        self.margins: list[tuple[float, Job]] = []  # jobs in danger but not late, and by how much they make it

    # Bounds, in constant time.

    def surely_saturated_secs(self, kind: int, now: float) -> float:
        """A time up to which all instances of that kind are busy for certain, or 0."""
        client = self._client
        if not client.plain[kind]:
            return 0.0
        n = client.instances[kind]
        work = client.work_secs(kind, now) - (n - 1) * client.longest_secs[kind]
        return max(0.0, (work / n - SLACK_SECS) / client.up_fraction[kind])

    def danger(self, now: float) -> bool:
        """Whether any job might miss its deadline; False is certain."""
        client = self._client
        for kind in self._kinds:
            heap = client.deadlines[kind]
            while heap and heap[0][2].done:
                heappop(heap)
            if heap and (
                not client.plain[kind] or now + self._all_done_secs(kind, now) > heap[0][0] - self._early_secs()
            ):
                return True
        return False

    def _early_secs(self) -> float:
        client = self._client
        return client.buffer_min_secs if client.quirks.buffer_before_deadline else 0.0

    def in_danger(self, kind: int, now: float) -> bool:
        """Whether a job of that kind might miss its deadline; False is certain."""
        client = self._client
        deadline = client.earliest_deadline(kind)
        if deadline == NEVER:
            return False
        if not client.plain[kind]:
            return True
        return now + self._all_done_secs(kind, now) > deadline - self._early_secs()

    def _all_done_secs(self, kind: int, now: float) -> float:
        """A time after which all jobs of that kind are done for certain, whatever their order."""
        client = self._client
        latest = client.work_secs(kind, now) / client.instances[kind] + client.longest_secs[kind] + SLACK_SECS
        return latest / client.up_fraction[kind]

    # Results.

    def outlook(self, now: float, horizon_secs: float) -> Outlook:
        """Idle instances, saturated times, and shortfalls up to the horizon."""
        key = (now, self._client.version, horizon_secs)
        if self._looked != key:
            self._looked = key
            if all(self._client.plain):
                self._outlook = self._dealt(now, horizon_secs)
            else:
                slices = Slices(self._client, self._rank, self._unit, now)
                slices.go_on(horizon_secs)
                self._outlook = slices.outlook
        return self._outlook

    def missed(self, now: float) -> list[list[Job]]:
        """Per kind, the jobs that would miss their deadline, by deadline."""
        key = (now, self._client.version)
        if self._judged != key:
            self._judged = key
            self._missed = self._judge(now)
        return self._missed

    def _judge(self, now: float) -> list[list[Job]]:
        client = self._client
        missed: list[list[Job]] = [[] for _ in self._kinds]
        self.margins = []
        kinds = [kind for kind in self._kinds if self.in_danger(kind, now)]
        if not kinds:
            return missed
        early = self._early_secs()
        endangered = {}
        for kind in kinds:
            bound = now + self._all_done_secs(kind, now) if client.plain[kind] else NEVER
            for project in client.projects:
                for jobs in (project.begun[kind], project.waiting[kind]):
                    for job in jobs:
                        if job.deadline_secs - early < bound:
                            endangered[job.id] = job
        slices = Slices(client, self._rank, self._unit, now)
        horizon = max((job.deadline_secs - early for job in endangered.values()), default=now) - now
        slices.go_on(max(0.0, horizon), set(endangered))
        for job in endangered.values():
            end = slices.ends.get(job.id, NEVER)
            if end > job.deadline_secs - early + LATE:
                missed[job.kind].append(job)
            else:
                self.margins.append((job.deadline_secs - early - end, job))
        for jobs in missed:
            jobs.sort(key=_by_deadline)
        return missed

    def busy_secs(self, now: float) -> list[float]:
        """Per kind, how long all instances are busy with the jobs that would miss their deadlines, run by
        earliest deadline: no new job can start before."""
        client = self._client
        busy = []
        for kind, jobs in enumerate(self.missed(now)):
            loads = [0.0] * int(client.instances[kind])
            for job in jobs:
                secs = job.left_secs(now) / client.up_fraction[kind]
                for _ in range(max(1, int(job.usage))):
                    heapreplace(loads, loads[0] + secs)
            busy.append(loads[0] if loads else 0.0)
        return busy

    # Without time slices.

    def _dealt(self, now: float, horizon_secs: float) -> Outlook:
        client = self._client
        idle, saturated, shortfall = [], [], []
        for kind in self._kinds:
            up = client.up_fraction[kind]
            horizon = horizon_secs * up
            loads = [0.0] * int(client.instances[kind])
            for secs in self._in_order(kind, now):
                least = loads[0]
                if least >= horizon:
                    break
                heapreplace(loads, least + secs)
            idle.append(float(loads.count(0.0)))
            saturated.append(loads[0] / up)
            shortfall.append(sum([horizon - load for load in loads if load < horizon]) / up)
        return Outlook(idle, saturated, shortfall)

    def _in_order(self, kind: int, now: float) -> list[float]:
        """Durations in the order in which round-robin picks the jobs: always one of the project whose priority is
        then the highest. A project's rank grows with what was picked, so sorting by the rank at each pick is it."""
        client = self._client
        picks: list[tuple[float, float]] = []
        for project in client.projects:
            begun, waiting = project.begun[kind], project.waiting[kind]
            if not begun and not waiting:
                continue
            if client.quirks.last_project_first:
                rank, unit = float(-project.index), 0.0
            else:
                rank, unit = self._rank(project), self._unit(project)
            for job in begun:
                secs = job.left_secs(now)
                picks.append((rank, secs))
                rank += unit * job.counted_flops * secs
            for job in waiting:
                secs = job.estimate_secs
                picks.append((rank, secs))
                rank += unit * job.counted_flops * secs
        picks.sort(key=_first)
        return [secs for _, secs in picks]


def _first(pair: tuple[float, float]) -> float:
    return pair[0]


def _by_deadline(job: Job) -> tuple[float, bool, int]:
    return (job.deadline_secs, not job.started, job.id)


class Slices:
    """The simulation in time slices: at each step every kind of processor, GPUs first, is filled with jobs in order
    of arrival from the project of highest priority; the step lasts to the next end, or one slice."""

    def __init__(
        self,
        client: Client,
        rank: Callable[[ProjectView], float],
        unit: Callable[[ProjectView], float],
        now: float,
    ) -> None:
        self._client = client
        self._now = now
        kinds = len(client.kinds)
        self._order = [*range(1, kinds), 0]
        self._ranks: dict[int, float] = {}
        self._units: dict[int, float] = {}
        # Per kind and project: jobs to run, latest arrived first, and what is left of each.
        self._queues: list[dict[int, list[Job]]] = [{} for _ in range(kinds)]
        self._left: dict[int, float] = {}
        for project in client.projects:
            self._take_in(project, rank(project), unit(project))
        self.ends: dict[int, float] = {}  # by job, time from the start of the run
        self.outlook = Outlook([0.0] * kinds, [NEVER] * kinds, [0.0] * kinds)

    def _take_in(self, project: ProjectState, rank: float, unit: float) -> None:
        client = self._client
        if client.quirks.last_project_first:
            rank, unit = float(-project.index), 0.0
        self._ranks[project.index] = rank
        self._units[project.index] = unit
        for kind in self._order:
            jobs = [*project.begun[kind], *project.waiting[kind]]
            if jobs:
                jobs.sort(key=_id, reverse=True)
                self._queues[kind][project.index] = jobs
                for job in jobs:
                    self._left[job.id] = job.left_secs(self._now) / client.up_fraction[kind]

    def go_on(self, horizon_secs: float, watched: set[int] | None = None) -> None:
        """Simulates up to the horizon, or until nothing is left, or nothing of the watched jobs."""
        client = self._client
        at = 0.0
        outlook = self.outlook
        first = True
        while at < horizon_secs or first:
            active = self._fill(first)
            step = min((self._left[job.id] for job in active), default=NEVER)
            period = client.period_secs
            if step > LONGEST_STEP_PARTS * period:
                # Not past the end of a short job that waits for its turn: it would seem to wait for days.
                step = max(period, min(step / LONGEST_STEP_PARTS, self._shortest_left()))
            elif step > period:
                step = period
            step = min(step, horizon_secs - at)
            for kind in self._order:
                if self._free[kind] > 1e-9:
                    outlook.saturated_secs[kind] = min(outlook.saturated_secs[kind], at)
                    outlook.shortfall_secs[kind] += self._free[kind] * step
            first = False
            if not active or step <= 0.0:
                break
            at += step
            self._advance(active, step, at)
            if watched is not None and len(self.ends) >= len(watched) and watched <= self.ends.keys():
                return
        for kind in self._order:
            outlook.saturated_secs[kind] = min(outlook.saturated_secs[kind], max(at, horizon_secs))

    def _shortest_left(self) -> float:
        return min(self._left[job.id] for queue in self._queues for jobs in queue.values() for job in jobs)

    def _fill(self, first: bool) -> list[Job]:
        client = self._client
        self._free = list(client.instances)
        active: list[Job] = []
        bumped = dict(self._ranks)
        for kind in self._order:
            places = {index: len(jobs) for index, jobs in self._queues[kind].items()}
            while self._free[kind] > 1e-9 and places:
                index = min(places, key=lambda index: (bumped[index], index))
                jobs = self._queues[kind][index]
                place = places[index] = places[index] - 1
                if not place:
                    del places[index]
                job = jobs[place]
                if kind and job.usage > self._free[kind] + 1e-9:
                    continue
                self._free[kind] -= job.usage
                if kind:
                    self._free[0] -= job.cpus
                active.append(job)
                bumped[index] += self._units[index] * job.counted_flops * client.period_secs
            self._free[kind] = max(0.0, self._free[kind])
            if first:
                self.outlook.idle[kind] = self._free[kind]
        return active

    def _advance(self, active: list[Job], step: float, at: float) -> None:
        for job in active:
            index = job.project.index
            self._ranks[index] += self._units[index] * job.counted_flops * step
            left = self._left[job.id] = self._left[job.id] - step
            if left <= LATE:
                self.ends[job.id] = self._now + at
                queue = self._queues[job.kind][index]
                queue.remove(job)
                if not queue:
                    del self._queues[job.kind][index]


def _id(job: Job) -> int:
    return job.id
