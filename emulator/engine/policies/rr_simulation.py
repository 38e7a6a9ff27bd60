"""The round-robin simulation: a forecast for the present jobs if the client ran them by weighted round-robin. All later
policies start from it (client scheduling document; emulator document, section 7).

Its results are, per kind of processor, the idle instances now, the time up to which all are busy ("saturated"), and the
shortfall up to the end of the buffer; and which jobs would miss their deadline. A second simulation of those, by
earliest deadline, gives the time for which all instances are busy with them ("busy time").

Simulations are avoided where a bound decides. Whatever the order, as long as no instance idles while a job waits for
it, all jobs are done after (work / instances + longest job): then none misses its deadline before, and the shortfall is
what the work leaves of the buffer. The forecast of the buffer is in `rr_turns`; that of late jobs, only as far as
needed, in `rr_slices`.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heapreplace
from typing import Final, TypeVar

from emulator.engine.client import Client
from emulator.engine.policies.forecast import Rank, SimulationResult
from emulator.engine.policies.rr_slices import LATE, RoundRobinSlices
from emulator.engine.policies.rr_turns import RoundRobinTurns
from emulator.engine.state import NEVER, Job, ProjectState

# The soonest that a choice is made again: a job with less time to spare runs for its deadline now.
MIN_MARGIN_SECS: Final = 60.0
MAX_SLICES: Final = 2000  # up to the end of the buffer
SLACK_SECS: Final = 1.0  # the sum of work is kept up to date with rounding errors


Ranking = Callable[[ProjectState], Rank]
AnyTurns = TypeVar("AnyTurns", bound=RoundRobinTurns)


class RoundRobinSimulation:
    """Simulates for one policy.

    `rank` is a project's priority, and `unit` by how much its number grows per counted FLOP done for the project.
    """

    def __init__(self, client: Client, rank: Ranking, unit: Callable[[ProjectState], float]) -> None:
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
        """A time up to which all instances of that kind are certainly busy, or 0. Once one is idle, fewer jobs than
        instances are left, none of them longer than the longest."""
        client = self._client
        if not client.present[kind]:
            return NEVER
        if client.any_suspended or client.limited:
            return 0.0
        n = client.instances[kind]
        work_secs = client.work_secs(kind, now) / n - client.longest_secs[kind] - SLACK_SECS
        if work_secs <= 0.0:
            return 0.0
        if client.uneven and not kind and client.min_usage[0] != client.max_usage[0]:
            work_secs *= n / (n + client.max_usage[0])  # CPUs are overcommitted by one job
        return work_secs / client.up_fraction[kind]

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
        if client.limited:  # at least one job runs at a time
            one_by_one = [client.work_secs(k, now) / client.min_usage[k] / client.up_fraction[k] for k in self._kinds]
            return sum(one_by_one) + SLACK_SECS
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
            self._result = self._forecast(now, horizon_secs)
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
            heap = client.deadlines[kind]
            latest_secs = now + (project.job_secs + client.longest_secs[kind]) / up + SLACK_SECS
            if not heap or heap[0][0] > latest_secs:
                urgent.append(0.0)
                continue
            work_secs = 0.0
            for job in (*project.begun[kind], *project.waiting[kind]):
                secs = job.left_secs(now)
                if now + (project.job_secs + secs) / up > job.deadline_secs:
                    work_secs += secs * job.usage
            urgent.append(work_secs / client.instances[kind] / up)
        return urgent

    def turns(self, form: type[AnyTurns], now: float, horizon_secs: float) -> AnyTurns:
        """The simulation of the buffer, not yet run."""
        return form(self._client, *self._ranking(), now, self._slice_secs(horizon_secs))

    def ends_secs(self) -> dict[int, float]:
        """By job, when those that `missed` looked at would end, in seconds from the start of the run.

        Those left out had not ended when it was known that they are late.
        """
        return self._ends

    def _forecast(self, now: float, horizon_secs: float) -> SimulationResult:
        client = self._client
        turns = self.turns(RoundRobinTurns, now, horizon_secs)
        simulated = turns.forecast(horizon_secs, horizon_secs + self._slice_secs(horizon_secs))
        client.slice_steps += turns.steps
        return simulated if all(client.present) else self._without_absent(simulated)

    def _without_absent(self, simulated: SimulationResult) -> SimulationResult:
        """Nothing is short of a kind of processor that the computer does not have now."""
        here = self._client.present
        return SimulationResult(
            [idle if is_here else 0.0 for idle, is_here in zip(simulated.idle, here, strict=True)],
            [secs if is_here else 0.0 for secs, is_here in zip(simulated.shortfall_secs, here, strict=True)],
            [secs if is_here else NEVER for secs, is_here in zip(simulated.saturated_secs, here, strict=True)],
        )

    def _slice_secs(self, horizon_secs: float) -> float:
        return max(self._client.period_secs, horizon_secs / MAX_SLICES)

    def _ranking(self) -> tuple[Ranking, Callable[[ProjectState], float]]:
        """A project's rank before the first slice is given out, and by how much it grows per counted FLOP."""
        if self._client.quirks.last_project_first:
            return (lambda project: (False, float(-project.index))), (lambda project: 0.0)
        return self._rank, self._unit


def _by_deadline(job: Job) -> tuple[float, bool, int]:
    return (job.deadline_secs, not job.started, job.id)
