"""Lists of tasks for tests of the account manager."""

from __future__ import annotations

import datetime as dt

from accounting.models import HostLedger, Project, TaskList
from portal.models import Host
from tests.support.am_rpc import hours_pass, sync
from tools.simulation.client import SimulatedComputer, Task

DEADLINE = 1_790_000_000.0
RUNNING = (1, 2)


def running(project: Project, name: str, fraction_done: float = 0.25) -> Task:
    return Task(project.master_url, name, DEADLINE, process=RUNNING, fraction_done=fraction_done, remaining_secs=7200)


def report(computer: SimulatedComputer, *tasks: Task) -> None:
    """The computer's next contact, an hour later, with these tasks."""
    hours_pass(computer, 1)
    computer.tasks = list(tasks)
    sync(computer)


def task_list(host: Host, at: dt.datetime, *names: str, project: Project, state: int = 1) -> None:
    """What the host listed at its last contact."""
    HostLedger.objects.update_or_create(host=host, defaults={"last_at": at})
    tasks = [
        {
            "project": project.pk,
            "name": name,
            "state": state,
            "fraction_done": 0.25,
            "deadline": DEADLINE,
            "elapsed_secs": 3600.0,
            "remaining_secs": 10_800.0,
        }
        for name in names
    ]
    TaskList.objects.update_or_create(host=host, defaults={"at": at, "tasks": tasks})
