"""Read the tasks on a volunteer's computers for pages: running ones, and the outcome of the others."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

import orjson
from django.db import connection
from django.utils.translation import gettext, gettext_noop

from accounting.engine.client_tasks import FINAL, TaskCreditState, TaskState
from accounting.models import FollowedTask, HostLedger, Project, TaskList
from accounting.running_tasks import sql
from accounting.running_tasks.follow import own_status
from accounting.running_tasks.links import base_of, task_url, web_base
from credit.statistics.exports import tasks_by_name
from portal.models import Host, User
from portal.templatetags.drawings import DATA_COLOURS

MAX_ON_HOME: Final = 8
MAX_ENDED: Final = 20
SHOWN_FOR: Final = dt.timedelta(days=2)
"""After this long without a contact, a computer's list no longer describes the present."""
_STATES: Final = {
    TaskState.RUNNING: gettext_noop("running"),
    TaskState.PAUSED: gettext_noop("paused"),
    TaskState.READY: gettext_noop("waiting to start"),
    TaskState.DOWNLOADING: gettext_noop("downloading"),
    TaskState.UPLOADING: gettext_noop("uploading"),
    TaskState.FINISHED: gettext_noop("finished, not reported yet"),
    TaskState.FAILED: gettext_noop("failed"),
    TaskState.ABORTED: gettext_noop("aborted"),
}
_ORDER: Final = {state: place for place, state in enumerate(_STATES)}
"""The order in which pages show them."""

_STANDINGS: Final = {
    TaskCreditState.OPEN: gettext_noop("not reported yet"),
    TaskCreditState.PENDING: gettext_noop("pending"),
    TaskCreditState.REFUSED: gettext_noop("refused by the project"),
    TaskCreditState.FAILED: gettext_noop("failed"),
    TaskCreditState.UNKNOWN: gettext_noop("not known to the project"),
}
_BY_STATISTICS: Final = gettext_noop("counts with the project’s statistics")
"""For a project that does not report the outcome of single tasks."""


@dataclass(frozen=True, slots=True)
class TaskLine:
    """A task in a computer's list. Times in seconds; None: the client did not say."""

    name: str
    url: str
    project_name: str
    colour: int
    state: TaskState
    fraction_done: float | None
    elapsed_secs: float | None
    remaining_secs: float | None
    deadline: dt.datetime | None
    reported_at: dt.datetime
    host_id: int
    host_name: str

    @property
    def state_text(self) -> str:
        return gettext(_STATES[self.state])

    @property
    def is_running(self) -> bool:
        return self.state is TaskState.RUNNING

    @property
    def is_begun(self) -> bool:
        """Whether there is progress to show."""
        return self.fraction_done is not None and self.state in (TaskState.RUNNING, TaskState.PAUSED)


@dataclass(frozen=True, slots=True)
class Running:
    """The running tasks on all computers of a volunteer: some of them, and their number."""

    lines: list[TaskLine]
    total: int

    @property
    def left_out(self) -> int:
        return self.total - len(self.lines)


@dataclass(frozen=True, slots=True)
class EndedLine:
    """A task that has left its computer's list. ``credit``: the grant; None: ``text`` explains its absence."""

    name: str
    url: str
    project_name: str
    colour: int
    last_seen_at: dt.datetime
    credit: float | None
    text: str


@dataclass(frozen=True, slots=True)
class HostTasks:
    """The tasks of one computer. ``left_out``: those that the site does not store."""

    lines: list[TaskLine]
    left_out: int
    reported_at: dt.datetime | None
    ended: list[EndedLine]


def read_running(user: User, now: dt.datetime) -> Running:
    """Read the tasks now running on the volunteer's computers, as far as their clients report; one statement."""
    params: dict[str, int | dt.datetime] = {
        "user": user.pk,
        "since": now - SHOWN_FOR,
        "running": int(TaskState.RUNNING),
        "most": MAX_ON_HOME,
    }
    lines, total = [], 0
    with connection.cursor() as cursor:
        cursor.execute(sql.RUNNING, params)
        for host_id, host_name, _, name, colour, master_url, stated, text, at, number in cursor:
            base, task = base_of(master_url, stated), orjson.loads(text)
            lines.append(_line(task, name, colour % DATA_COLOURS, base, at, host_id, host_name))
            total = number
    return Running(lines, total)


def read_host_tasks(host: Host, now: dt.datetime) -> HostTasks:
    """Read the tasks of one computer; four statements, and one more where the site's own project has to be asked."""
    last_at = HostLedger.objects.filter(host=host).values_list("last_at", flat=True).first()
    task_list = TaskList.objects.filter(host=host).first()
    if task_list is not None and last_at is not None and task_list.at < last_at:
        # Its client no longer lists its tasks.
        task_list = None
    listed = task_list.tasks if task_list is not None else []
    projects = Project.objects.select_related("profile").in_bulk({task["project"] for task in listed})
    lines = []
    if task_list is not None and task_list.at >= now - SHOWN_FOR:
        for task in listed:
            if (project := projects.get(task["project"])) is not None:
                base = web_base(project)
                lines.append(_line(task, project.name, project.data_colour, base, task_list.at, host.pk, host.name))
    lines.sort(key=lambda line: (_ORDER[line.state], line.project_name, line.name))
    return HostTasks(
        lines=lines,
        left_out=task_list.left_out if lines and task_list is not None else 0,
        reported_at=task_list.at if task_list is not None else None,
        ended=_read_ended(host, {(task["project"], task["name"]) for task in listed}),
    )


def _line(
    task: dict[str, Any], project_name: str, colour: int, base: str, at: dt.datetime, host_id: int, host_name: str
) -> TaskLine:
    deadline = task["deadline"]
    return TaskLine(
        name=task["name"],
        url=task_url(base, task["name"]),
        project_name=project_name,
        colour=colour,
        state=TaskState(task["state"]),
        fraction_done=task["fraction_done"],
        elapsed_secs=task["elapsed_secs"],
        remaining_secs=task["remaining_secs"],
        deadline=dt.datetime.fromtimestamp(deadline, dt.UTC) if deadline else None,
        reported_at=at,
        host_id=host_id,
        host_name=host_name,
    )


def _read_ended(host: Host, listed: Collection[tuple[int, str]]) -> list[EndedLine]:
    rows = FollowedTask.objects.filter(host=host).select_related("project__profile", "project__task_source")
    newest = rows.order_by("-last_seen_at", "-pk")[: MAX_ENDED + len(listed)]
    tasks = [task for task in newest if (task.project_id, task.name) not in listed][:MAX_ENDED]
    open_here = {task.name for task in tasks if task.project.is_served_here and task.standing not in FINAL}
    own_tasks = tasks_by_name(open_here) if open_here else {}
    ended = []
    for task in tasks:
        now_known = own_status(own_tasks.get(task.name), host.owner_id) if task.name in open_here else None
        standing = now_known.standing if now_known is not None else TaskCreditState(task.standing)
        ended.append(
            EndedLine(
                name=task.name,
                url=task_url(web_base(task.project), task.name),
                project_name=task.project.name,
                colour=task.project.data_colour,
                last_seen_at=task.last_seen_at,
                credit=now_known.granted_credit if now_known is not None else task.granted_credit,
                text=_text(task.project, standing),
            )
        )
    return ended


def _text(project: Project, standing: TaskCreditState) -> str:
    source = getattr(project, "task_source", None)
    if standing == TaskCreditState.OPEN and not project.is_served_here and (source is None or source.problem):
        return gettext(_BY_STATISTICS)
    return gettext(_STANDINGS[standing]) if standing in _STANDINGS else ""
