"""Follow the tasks that clients list: take new lists over, settle those of this site's own project, forget old ones."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable
from typing import Final

from django.db import connection, transaction
from django.db.models import QuerySet

from accounting.engine.client_tasks import ASKED_AFTER, FINAL, UNKNOWN_MAX, TaskCreditState, wait_before
from accounting.models import FollowedTask, Project, TaskList
from accounting.running_tasks import sql
from accounting.wire.task_status import TaskStatus, status_of
from credit.statistics.exports import ExportedTask, tasks_by_name
from portal.models import User

MAX_FOLLOWED: Final = 500
"""The most tasks stored per computer; new ones replace decided ones. Any further ones are only shown."""
FOLLOWED_FOR: Final = dt.timedelta(days=30)
"""How long a task is stored after it was last in its computer's list."""
LISTS_KEPT: Final = dt.timedelta(days=7)
_LISTS_AT_ONCE: Final = 200
_TASKS_AT_ONCE: Final = 500
_FORGOTTEN_AT_ONCE: Final = 5000
_MAX_ROUNDS: Final = 50
_SETTLED: Final = ("standing", "granted_credit", "asks", "unknowns", "ask_after", "settled_at")


def follow(now: dt.datetime) -> None:
    """Run all steps, in small transactions; safe to run twice, at the same time too."""
    for _ in range(_MAX_ROUNDS):
        if take_lists() < _LISTS_AT_ONCE:
            break
    own = Project.served_here().first()
    if own is not None:
        for _ in range(_MAX_ROUNDS):
            if settle_own(own, now) < _TASKS_AT_ONCE:
                break
    _forget_old(now)


def take_lists() -> int:
    """Copy tasks from new lists into the followed tasks; return how many lists."""
    params = {"lists": _LISTS_AT_ONCE, "asked_after_secs": ASKED_AFTER.total_seconds(), "per_host": MAX_FOLLOWED}
    with connection.cursor() as cursor:
        cursor.execute(sql.FOLLOW, params)
        return int(cursor.rowcount)


def due_tasks(project_id: int, now: dt.datetime) -> QuerySet[FollowedTask]:
    """Return the tasks to ask a project about, the longest waiting first."""
    return FollowedTask.objects.filter(project=project_id, ask_after__lte=now).order_by("ask_after", "pk")


def settle_own(project: Project, now: dt.datetime) -> int:
    """Note the outcome of some tasks of the site's own project; return how many were due. Locks these tasks."""
    with transaction.atomic():
        due = due_tasks(project.pk, now).select_related("host").select_for_update(of=("self",), skip_locked=True)
        tasks = list(due[:_TASKS_AT_ONCE])
        own_tasks = tasks_by_name([task.name for task in tasks])
        note_answers(tasks, lambda task: own_status(own_tasks.get(task.name), task.host.owner_id), now)
        return len(tasks)


def own_status(exported: ExportedTask | None, owner_id: int) -> TaskStatus | None:
    """Return the state of a task of the site's own project; None also for somebody else's."""
    if exported is None or exported.user_id != owner_id:
        return None
    return status_of(exported.server_state, exported.outcome, exported.validate_state, exported.granted_credit)


def note_answers(
    tasks: Iterable[FollowedTask], answer_to: Callable[[FollowedTask], TaskStatus | None], now: dt.datetime
) -> None:
    """Note the project's answers about locked tasks; None: it does not know one."""
    changed = list(tasks)
    for task in changed:
        _note(task, answer_to(task), now)
    FollowedTask.objects.bulk_update(changed, _SETTLED, batch_size=_TASKS_AT_ONCE)


def _note(task: FollowedTask, status: TaskStatus | None, now: dt.datetime) -> None:
    task.asks = min(task.asks + 1, 1000)
    task.ask_after = now + wait_before(task.asks)
    task.unknowns = 0 if status is not None else task.unknowns + 1
    if status is not None:
        task.standing, task.granted_credit = status.standing, status.granted_credit
    elif task.unknowns >= UNKNOWN_MAX:
        task.standing, task.granted_credit = TaskCreditState.UNKNOWN, None
    if task.standing in FINAL or task.standing == TaskCreditState.UNKNOWN:
        task.ask_after, task.settled_at = None, now


def _forget_old(now: dt.datetime) -> None:
    TaskList.objects.filter(at__lt=now - LISTS_KEPT).delete()
    # A report may have come before its owner's change.
    forget_lists(User.objects.filter(account_settings__sends_tasks=False))
    for _ in range(_MAX_ROUNDS):
        old = FollowedTask.objects.filter(last_seen_at__lt=now - FOLLOWED_FOR).values_list("pk", flat=True)
        if FollowedTask.objects.filter(pk__in=list(old[:_FORGOTTEN_AT_ONCE])).delete()[0] < _FORGOTTEN_AT_ONCE:
            break


def forget_lists(users: QuerySet[User]) -> None:
    """Forget all tasks of these volunteers' computers."""
    TaskList.objects.filter(host__owner__in=users).delete()
    FollowedTask.objects.filter(host__owner__in=users).delete()


def move(older_id: int, newer_id: int) -> None:
    """Move the tasks of an older record that is merged with a newer one, whose list is the later. Ledgers are
    locked.
    """
    TaskList.objects.filter(host=older_id).delete()
    with connection.cursor() as cursor:
        cursor.execute(sql.MOVE, {"older": older_id, "newer": newer_id})
