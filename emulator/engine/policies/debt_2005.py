"""The policy of 2005: result preemption by debts in fixed periods, and `need_to_get_work`.

Source: "BOINC client result computation scheduling" of 2005 (the 2005 text). Sections followed:

* "A sketch of the result preemption algorithm" and "Pseudocode". As `total_work_done_this_period` begins as
  `num_cpus * period_length`, the first call of `preempt_apps` credits every project with its share of a whole period;
* "Debt computation": each project accrues its share of all work done and pays off what was done for it, so the sum of
  all debts stays as it was; and the expected future debts;
* "Scheduler RPC policy" and "need_to_get_work()".

Errors of its pseudocode are corrected: `found` begins false for each CPU; a task started in mid-period joins the
running ones; a project is out of consideration for one CPU's choice only; a period without work leaves the debts
alone (and expects whole periods of the next); the work of a started result is what remains. It does not say which
project is asked: here the one that lacks most of its cap, of equal ones the one with the largest debt, for up to its
share of the whole buffer. It covers only CPUs: GPU jobs are neither requested nor run.
docs/explanation/emulator-policies.md has the details. The rules are in emulator.engine.kernel.debt.
"""

from __future__ import annotations

from dataclasses import dataclass

from emulator.engine.kernel.queues import DEBT
from emulator.engine.policies.in_arrays import ArrayPolicy, rows_of
from emulator.engine.policies.names import PolicyName
from emulator.engine.scenario import Scenario
from emulator.engine.state import Job, ProjectState
from emulator.engine.table import Table


@dataclass(slots=True)
class _Task:
    """A running task (ACTIVE_TASK): its work in this period, and the debt that it is expected to pay off in it."""

    job: int
    project: int
    reason: int
    pay_off: float
    work_secs: float


class Debt2005(ArrayPolicy):
    """The policy of 2005. Debts are in CPU-seconds, times in seconds."""

    name = PolicyName.DEBT
    uses_backoffs = False

    def __init__(self, scenario: Scenario) -> None:
        self._start_debts = {project.name: project.standing.debt_secs for project in scenario.projects}

    def open_accounts(self) -> None:
        client = self._client
        self._debts = {project.index: self._start_debts.get(project.name, 0.0) for project in client.projects}
        self._tasks: list[_Task] = []
        self._done_secs = [0.0] * len(client.all_projects)  # by tasks that finished in this period
        self._times = {
            "accrued_secs": 0.0,
            "initial_secs": client.instances[0] * client.period_secs,  # before the first period
            "period_from_secs": 0.0,
            "next_period_secs": 0.0,
            "pay_off_secs": 0.0,  # expected of one CPU in a whole period
            "recheck_secs": 0.0,  # until then no condition to fetch becomes true, or no project can be asked
        }

    def projects_changed(self, now: float) -> None:
        self._times["recheck_secs"] = 0.0
        projects = self._client.projects
        self._debts = {project.index: self._debts.get(project.index, 0.0) for project in projects}
        self._shares = _share_fractions(projects)
        self._runnable_shares = _share_fractions([project for project in projects if not project.suspended])
        for task in self._tasks:
            if task.project not in self._runnable_shares:
                self._done_secs[task.project] += task.work_secs
        self._tasks = [task for task in self._tasks if task.project in self._runnable_shares]

    def job_ended(self, job: Job, now: float) -> None:
        for task in [task for task in self._tasks if task.job == job.id]:
            self._tasks.remove(task)
            self._done_secs[task.project] += task.work_secs

    def standing(self, project: ProjectState, now: float) -> float:
        return self._debts.get(project.index, 0.0)

    def load(self, t: Table) -> None:
        run = t.run[0]
        run["policy"], run["tasks"] = DEBT, len(self._tasks)
        for name, secs in self._times.items():
            run[name] = secs
        for index, row in enumerate(t.projects):
            row["share_fraction"], row["done_secs"] = self._shares.get(index, 0.0), self._done_secs[index]
            row["runnable_fraction"] = self._runnable_shares.get(index, 0.0)
            t.pairs[index, 0]["debt"] = self._debts.get(index, 0.0)
        rows = rows_of(t, [task.job for task in self._tasks])
        for entry, task, row in zip(t.lists, self._tasks, rows, strict=False):
            entry["task_jobs"], entry["task_reasons"] = row, task.reason
            entry["task_pay_off"], entry["task_work"] = task.pay_off, task.work_secs

    def store(self, t: Table) -> None:
        self._times = {name: float(t.run[0][name]) for name in self._times}
        self._done_secs = t.projects["done_secs"].tolist()
        for index in self._debts:
            self._debts[index] = float(t.pairs[index, 0]["debt"])
        self._tasks = []
        for entry in t.lists[: t.run[0]["tasks"]]:
            job = t.jobs[entry["task_jobs"]]
            numbers = int(job["id"]), int(job["project"]), int(entry["task_reasons"])
            self._tasks.append(_Task(*numbers, float(entry["task_pay_off"]), float(entry["task_work"])))

    def priorities(self, t: Table, order: list[int]) -> list[float]:
        return [self._debts.get(p, 0.0) for p in order]


def _share_fractions(projects: list[ProjectState]) -> dict[int, float]:
    total = sum(project.share for project in projects)
    return {project.index: project.share / total if total else 0.0 for project in projects}
