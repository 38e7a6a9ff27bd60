"""The policy of 2005: result preemption by debts in fixed periods, and `need_to_get_work`.

Source: "BOINC client result computation scheduling" of 2005 (the 2005 text). Sections followed:

* "A sketch of the result preemption algorithm" and "Pseudocode": `_preempt`, `_start`, `job_ended`. As
  `total_work_done_this_period` begins as `num_cpus * period_length`, the first call of `preempt_apps` credits every
  project with its share of a whole period;
* "Debt computation": `settle_debts` and the expected future debts;
* "Scheduler RPC policy" and "need_to_get_work()": `need_to_get_work`, `fetch`.

Errors of its pseudocode are corrected: `found` begins false for each CPU; a task started in mid-period joins the
running ones; a project is out of consideration for one CPU's choice only; a period without work leaves the debts
alone (and expects whole periods of the next); the work of a started result is what remains. It does not say which
project is asked: here the one that lacks most of its cap, of equal ones the one with the largest debt, for up to its
share of the whole buffer. It covers only CPUs: GPU jobs are neither requested nor run.
docs/explanation/emulator-policies.md has the details.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop
from typing import Final

from emulator.engine.client import Client
from emulator.engine.decisions import Choice, Fetch, WorkRequest
from emulator.engine.policies.debts import MIN_RECHECK_SECS, has_many_jobs
from emulator.engine.policies.names import PolicyName
from emulator.engine.scenario import Scenario
from emulator.engine.state import Job, ProjectState
from emulator.engine.timeline.reasons import Reason


def settle_debts(
    debts: Mapping[int, float],
    share_fractions: Mapping[int, float],
    work_secs: Mapping[int, float],
    initial_secs: float = 0.0,
) -> dict[int, float]:
    """Return the debts after a period in which each project did that work (CPU-seconds; shares sum to 1).

    Each accrues its share of all work done and pays off what was done for it ("Debt computation"), so the sum of all
    debts stays as it was; except by `initial_secs`, which count as done, but for no project.
    """
    total_secs = initial_secs + sum(work_secs.values())
    return {
        index: debts.get(index, 0.0) + fraction * total_secs - work_secs.get(index, 0.0)
        for index, fraction in share_fractions.items()
    }


@dataclass(frozen=True, slots=True)
class WorkNeed:
    """What `need_to_get_work` found. Exactly when one of the three is true, the text's predicate is.

    `buffer_short`: condition 1, less work than the least buffer on all CPUs. `project_short`: condition 2, enough
    work in all, but not when each project counts for its share at most. `few_tasks`: condition 3, enough work, but
    not in as many tasks as would keep every CPU busy.
    """

    buffer_short: bool
    project_short: bool
    few_tasks: bool
    busy_cpus: int
    work_secs: Mapping[int, float]  # per project, not capped
    spare_secs: float  # how much work may be done before condition 1 or 2 can come true
    lack_secs: float  # how much there is less than the least buffer on all CPUs

    def __bool__(self) -> bool:
        return self.buffer_short or self.project_short or self.few_tasks

    @property
    def reason(self) -> Reason:
        """The first condition that fired, as a reason to ask."""
        if self.buffer_short:
            return Reason.FETCH_BUFFER
        if self.few_tasks:
            return Reason.FETCH_FEW_TASKS
        return Reason.FETCH_PROJECT_SHORT if self.project_short else Reason.NONE


def need_to_get_work(
    results: Iterable[tuple[int, float]], share_fractions: Mapping[int, float], cpus: int, min_buffer_secs: float
) -> WorkNeed:
    """Whether more work is needed, and why ("need_to_get_work()").

    `results` are (project, estimated CPU-seconds left). They are packed into bins of one CPU each, longest first; a
    bin that holds the least buffer is a busy CPU. Then all work is counted, each project's up to its share of
    the least buffer of all CPUs: that sum is short exactly when one project is short of its part. `share_fractions`
    has every project, and sums to 1.
    """
    work_secs = dict.fromkeys(share_fractions, 0.0)
    heap: list[float] = []
    for index, secs in results:
        work_secs[index] = work_secs.get(index, 0.0) + secs
        heap.append(-secs)
    heapify(heap)  # only as many are sorted as it takes to fill the bins
    busy_cpus, bin_secs = 0, 0.0
    while heap and busy_cpus < cpus:
        bin_secs -= heappop(heap)
        if bin_secs >= min_buffer_secs:
            busy_cpus, bin_secs = busy_cpus + 1, 0.0
    return _judge(work_secs, busy_cpus, share_fractions, cpus, min_buffer_secs)


def _judge(
    work_secs: dict[int, float],
    busy_cpus: int,
    share_fractions: Mapping[int, float],
    cpus: int,
    min_buffer_secs: float,
) -> WorkNeed:
    """The three conditions, by each project's work and the CPUs that it keeps busy."""
    needed_secs = min_buffer_secs * cpus
    total_secs = sum(work_secs.values())
    # The most lacking project's work beyond its part. The shares' rounding must not count as a project without work.
    beyond_secs = min((work_secs[index] - part * needed_secs for index, part in share_fractions.items()), default=0.0)
    buffer_short = total_secs < needed_secs
    return WorkNeed(
        buffer_short=buffer_short,
        project_short=not buffer_short and beyond_secs < -SHARE_ROUNDING * needed_secs,
        few_tasks=not buffer_short and busy_cpus < cpus,
        busy_cpus=busy_cpus,
        work_secs=work_secs,
        spare_secs=min(total_secs - needed_secs, beyond_secs),
        lack_secs=max(0.0, needed_secs - total_secs),
    )


NONE_FREE: Final = 1e-9  # CPUs
SHARE_ROUNDING: Final = 1e-9  # of the least buffer


@dataclass(slots=True)
class Task:
    """A running task (ACTIVE_TASK): its work in this period, and the debt that it is expected to pay off in it."""

    job: Job
    reason: Reason
    expected_pay_off: float
    work_secs: float = 0.0


class Debt2005:
    """The policy of 2005. Debts are in CPU-seconds, times in seconds."""

    name = PolicyName.DEBT
    uses_backoffs = False

    def __init__(self, scenario: Scenario) -> None:
        self._start_debts = {project.name: project.standing.debt_secs for project in scenario.projects}
        self._client: Client
        self.debts: dict[int, float] = {}
        self.tasks: list[Task] = []
        self.done_secs: list[float] = []  # by tasks that finished in this period, per project
        self.initial_secs = 0.0  # of total_work_done_this_period before the first period
        self.period_from = 0.0
        self.next_period = 0.0
        self.pay_off_secs = 0.0  # expected of one CPU in a whole period
        self.booked_to = 0.0
        self.recheck_at = 0.0  # no condition to fetch becomes true before, or no project can be asked

    def begin(self, client: Client) -> None:
        self._client = client
        self.initial_secs = client.instances[0] * client.period_secs
        self.debts = {project.index: self._start_debts.get(project.name, 0.0) for project in client.projects}
        self.done_secs = [0.0] * len(client.all_projects)
        self._set_shares()

    def _set_shares(self) -> None:
        projects = self._client.projects
        self._runnable = [project for project in projects if _runnable(project)]
        self.shares = _share_fractions(projects)
        self.runnable_shares = _share_fractions(self._runnable)

    def accrue(self, now: float) -> None:
        elapsed_secs = now - self.booked_to
        self.booked_to = now
        running = [task for task in self.tasks if task.job.running]
        cpus = sum(task.job.cpus for task in running)
        if elapsed_secs <= 0 or not running:
            return
        rate = min(1.0, self._client.instances[0] / cpus)
        for task in running:
            task.work_secs += elapsed_secs * task.job.cpus * rate

    def projects_changed(self, now: float) -> None:
        self.recheck_at = 0.0
        self._set_shares()
        attached = {project.index for project in self._client.projects}
        self.debts = {index: self.debts.get(index, 0.0) for index in sorted(attached)}
        for task in [task for task in self.tasks if not _runnable(task.job.project)]:
            self.tasks.remove(task)
            self._book(task)

    def job_ended(self, job: Job, now: float) -> None:
        for task in self.tasks:
            if task.job is job:
                self.tasks.remove(task)
                self._book(task)
                return

    def _book(self, task: Task) -> None:
        """handle_finished_apps: keep the work of a task that is no more, for the end of the period."""
        self.done_secs[task.job.project.index] += task.work_secs

    def choose(self, now: float) -> Choice:
        if now >= self.next_period:
            self._preempt(now)
        elif self._client.kind_active[0]:
            self._start(now)
        if not self._client.kind_active[0]:
            return Choice([], [], self.next_period)
        jobs = [task.job for task in self.tasks]
        return Choice(jobs, [task.reason for task in self.tasks], self.next_period)

    def _preempt(self, now: float) -> None:
        """preempt_apps: finish the accounting of the last period and choose for the next."""
        for task in self.tasks:
            self._book(task)
        cpus = self._client.instances[0]
        initial_secs, self.initial_secs = self.initial_secs, 0.0
        total_secs = initial_secs + sum(self.done_secs)
        self.debts = settle_debts(self.debts, self.shares, dict(enumerate(self.done_secs)), initial_secs)
        self.pay_off_secs = total_secs / cpus if total_secs > 0 else self._client.period_secs
        self.done_secs = [0.0] * len(self.done_secs)
        self.period_from = now
        self.next_period = now + self._client.period_secs
        to_preempt = self.tasks
        self.tasks = []
        self._fill(dict(self.debts), self.pay_off_secs, to_preempt, in_mid_period=False)

    def _start(self, now: float) -> None:
        """start_apps: a CPU became free within the period."""
        if self._free_cpus() <= NONE_FREE or not self._client.with_jobs[0]:
            return
        future = {index: debt - self.done_secs[index] for index, debt in self.debts.items()}
        for task in self.tasks:
            future[task.job.project.index] = future.get(task.job.project.index, 0.0) - task.expected_pay_off
        left = (self.next_period - now) / (self.next_period - self.period_from)
        self._fill(future, left * self.pay_off_secs, [], in_mid_period=True)

    def _fill(
        self, future: dict[int, float], pay_off_secs: float, to_preempt: list[Task], *, in_mid_period: bool
    ) -> None:
        """Choose tasks for the CPUs that have none: the project with the largest expected future debt each time."""
        free_cpus = self._free_cpus()
        projects = [project for project in self._client.with_jobs[0] if _runnable(project)]
        taken = {task.job.id for task in self.tasks}
        kept = {project.index: [task.job for task in to_preempt if task.job.project is project] for project in projects}
        offers = {project.index: _offers(project, kept[project.index], taken) for project in projects}
        while free_cpus > NONE_FREE and projects:
            project = max(projects, key=lambda project: (future.get(project.index, 0.0), -project.index))
            offer = next(offers[project.index], None)
            if offer is None:
                projects.remove(project)  # it has nothing more, so no later CPU's choice can take it either
                continue
            job, reason = offer
            expected_secs = pay_off_secs * job.cpus
            self.tasks.append(Task(job, Reason.DEBT_MID_PERIOD if in_mid_period else reason, expected_secs))
            future[project.index] = future.get(project.index, 0.0) - expected_secs
            free_cpus -= job.cpus

    def _free_cpus(self) -> float:
        return self._client.instances[0] - sum([task.job.cpus for task in self.tasks])

    def _need(self, now: float) -> WorkNeed:
        client, results = self._client, list[tuple[int, float]]()
        cpus = max(1, int(client.instances[0]))
        if not client.uneven:
            work_secs = {project.index: project.waiting_secs[0] for project in self._runnable}
            for project in client.with_jobs[0]:
                if project.index in work_secs:
                    work_secs[project.index] += sum([job.left_secs(now) for job in project.begun[0]])
            # No bin gets more than its last result beyond the least buffer, so this much fills them all.
            if sum(work_secs.values()) > cpus * (client.buffer_min_secs + client.longest_secs[0]) + 1.0:
                return _judge(work_secs, cpus, self.runnable_shares, cpus, client.buffer_min_secs)
        for project in self._runnable:
            for job in (*project.begun[0], *project.waiting[0]):
                # A job of several CPUs keeps this many busy: it counts as one result for each.
                whole = max(1, int(job.cpus))
                results += [(project.index, job.left_secs(now) * job.cpus / whole)] * whole
        return need_to_get_work(results, self.runnable_shares, cpus, client.buffer_min_secs)

    def fetch(self, now: float) -> Fetch:
        if now >= self.recheck_at:
            need = self._need(now)
            request = self._request(need, now) if need else None
            if request is not None:
                return Fetch(request, now)
            self.recheck_at = self._next_recheck(need, now)
        return Fetch(None, self.recheck_at)

    def _next_recheck(self, need: WorkNeed, now: float) -> float:
        """When to count again: nothing can be needed before, or no project can be asked.

        Conditions 1 and 2 take as long as the work to spare lasts, at one second per CPU and second; condition 3 has no
        such bound, so a quarter of the least buffer is the longest.
        """
        if need:
            allowed = [project.rpc_allowed_secs for project in self._client.projects if project.rpc_allowed_secs > now]
            return min(allowed, default=now + self._client.period_secs)
        secs = min(need.spare_secs / self._client.instances[0], self._client.buffer_min_secs / 4)
        return now + max(MIN_RECHECK_SECS, secs)

    def _request(self, need: WorkNeed, now: float) -> WorkRequest | None:
        """Whom to ask: shortest of its cap, then largest debt. Others only when the computer as a whole is short."""
        client = self._client
        fractions = self.runnable_shares
        cpus = client.instances[0]
        best: tuple[tuple[float, float, int], ProjectState] | None = None
        for project in client.projects:
            if not client.can_ask(project, now) or not project.can_supply[0] or has_many_jobs(project):
                continue
            cap_secs = fractions[project.index] * client.buffer_min_secs * cpus
            lack = 1 - need.work_secs[project.index] / cap_secs if cap_secs > 0 else 0.0
            if lack <= 0 and not (need.buffer_short or need.few_tasks):
                continue
            rank = (max(0.0, lack), self.debts.get(project.index, 0.0), -project.index)
            if best is None or rank > best[0]:
                best = (rank, project)
        if best is None:
            return None
        project = best[1]
        secs = fractions[project.index] * client.buffer_total_secs * cpus - need.work_secs[project.index]
        if need.buffer_short or need.few_tasks:
            secs = max(secs, need.lack_secs, (cpus - need.busy_cpus) * client.buffer_min_secs)
        empty = [0.0] * len(client.kinds)
        return WorkRequest(project, [max(secs, 1.0), *empty[1:]], empty, need.reason)

    def piggyback_request(self, project: ProjectState, now: float) -> WorkRequest | None:
        need = self._need(now)
        request = self._request(need, now) if need else None
        return request if request is not None and request.project is project else None

    def standing(self, project: ProjectState, now: float) -> float:
        return self.debts.get(project.index, 0.0)


def _share_fractions(projects: Sequence[ProjectState]) -> dict[int, float]:
    total = sum(project.share for project in projects)
    return {project.index: project.share / total if total else 0.0 for project in projects}


def _runnable(project: ProjectState) -> bool:
    return project.attached and not project.suspended


def _offers(project: ProjectState, kept: Sequence[Job], taken: set[int]) -> Iterator[tuple[Job, Reason]]:
    """The project's results in the order of preference: that ran last, preempted, not yet started."""
    for job in kept:
        yield job, Reason.DEBT_KEPT
    running = taken | {job.id for job in kept}
    for job in project.begun[0]:
        if job.id not in running:
            yield job, Reason.DEBT_RESUMED
    for job in project.waiting[0]:
        if job.id not in running:
            yield job, Reason.DEBT_NEW
