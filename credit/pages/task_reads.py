"""Reads for the pages of tasks: a volunteer's tasks, one of them, and its workunit.

A task is what BOINC's database calls a result. Volunteers see their own. Of others' results of the same workunit they
see the outcome, but never the volunteer or the computer.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.utils.translation import gettext_lazy as _

from credit.engine.recent_credit import decayed
from credit.engine.rules import Rules
from credit.models import (
    WORKUNIT_ERRORS,
    App,
    AppVersion,
    Outcome,
    Result,
    ResultPart,
    ServerState,
    UserCredit,
    UserOpening,
    ValidateState,
    Workunit,
)
from credit.pages.state_texts import StateText, reason_text, state_text
from portal.models import Host, User

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

PAGE_TASKS = 50
MAX_REPLICAS_SHOWN = 100
MAX_PARTS_SHOWN = 100
SEES_ALL: Final = "credit.view_result"
"""The permission to see all tasks of the project, whoever's computer they are on."""

_FAILED: Final = [Outcome.COULD_NOT_SEND, Outcome.CLIENT_ERROR, Outcome.NO_REPLY, Outcome.CLIENT_DETACHED]

STATES: Final[dict[str, tuple[StrOrPromise, Callable[[], Q]]]] = {
    "": (_("All"), Q),
    "progress": (_("In progress"), lambda: Q(server_state=ServerState.IN_PROGRESS)),
    "pending": (
        _("Pending"),
        lambda: Q(outcome=Outcome.SUCCESS, validate_state__in=[ValidateState.INIT, ValidateState.INCONCLUSIVE]),
    ),
    "valid": (_("Valid"), lambda: Q(validate_state=ValidateState.VALID)),
    "invalid": (
        _("Invalid"),
        lambda: (
            Q(validate_state__in=[ValidateState.INVALID, ValidateState.TOO_LATE]) | Q(outcome=Outcome.VALIDATE_ERROR)
        ),
    ),
    "error": (_("Errors"), lambda: Q(outcome__in=_FAILED)),
}
"""The choices of the list by their names in the address: the label, and the condition on a result."""

# The columns shown in a list; stderr and the like stay in the database.
_LISTED: Final = (
    "id",
    "name",
    "server_state",
    "outcome",
    "validate_state",
    "exit_status",
    "sent_at",
    "deadline_at",
    "received_at",
    "elapsed_secs",
    "cpu_secs",
    "claimed_credit",
    "granted_credit",
    "partial_credit",
    "is_approximate",
    "processor_type",
    "workunit_id",
    "user_id",
    "app__name",
    "app__user_friendly_name",
    "host__given_name",
    "host__domain_name",
)


@dataclass(frozen=True, slots=True)
class TaskRow:
    """A line of a list of tasks."""

    task: Result
    state: StateText
    mine: bool


@dataclass(frozen=True, slots=True)
class TaskList:
    """One page of the list; ``next_before`` is the id that the next page begins below, None on the last."""

    rows: list[TaskRow]
    next_before: int | None
    state: str
    host: Host | None
    app: App | None


def recent_credit(of: UserCredit | AppVersion | None, now: dt.datetime) -> float:
    """Return the current recent average credit (a day): the stored value refers to the time of the last grant."""
    if of is None or of.expavg_at is None:
        return 0.0
    return decayed(of.expavg_credit, of.expavg_at.timestamp(), now.timestamp(), Rules.published())


@dataclass(frozen=True, slots=True)
class TaskSums:
    """The figures above the list: credit in total, the part from before the project moved here, recent credit per day,
    and jobs in progress.
    """

    total_credit: float
    earlier_credit: float
    recent_credit: float
    in_progress: int


def read_sums(user: User, now: dt.datetime) -> TaskSums:
    """Read the figures above the list.

    Two statements; only jobs in progress are counted (by their index), so the cost does not grow with history.
    """
    earlier = UserOpening.objects.filter(user=OuterRef("user")).values("total_credit")
    credit = UserCredit.objects.filter(user=user).annotate(earlier=Subquery(earlier)).first()
    return TaskSums(
        credit.total_credit if credit is not None else 0.0,
        (credit.earlier or 0.0) if credit is not None else 0.0,
        recent_credit(credit, now),
        Result.objects.filter(host__owner=user, server_state=ServerState.IN_PROGRESS).count(),
    )


def read_tasks(
    user: User, now: dt.datetime, *, state: str, host: Host | None, app: App | None, before: int | None
) -> TaskList:
    """Read the volunteer's tasks, newest first, by keyset on the id. One statement.

    Raises KeyError if the state is not in `STATES`.
    """
    tasks = own_tasks(user, state)
    if host is not None:
        tasks = tasks.filter(host=host)
    if app is not None:
        tasks = tasks.filter(app=app)
    if before is not None:
        tasks = tasks.filter(pk__lt=before)
    page = list(tasks.order_by("-pk")[: PAGE_TASKS + 1])
    rows = [TaskRow(task, state_text(task, now), True) for task in page[:PAGE_TASKS]]
    return TaskList(rows, page[PAGE_TASKS - 1].pk if len(page) > PAGE_TASKS else None, state, host, app)


def own_tasks(user: User, state: str = "") -> QuerySet[Result]:
    """Return the volunteer's tasks in a state, with the columns that lists show.

    Raises KeyError if it is not in `STATES`.
    """
    return _listed(Result.objects.filter(STATES[state][1](), user=user))


def _listed(tasks: QuerySet[Result]) -> QuerySet[Result]:
    return tasks.select_related("app", "host").only(*_LISTED)


def read_task_page(user: User, pk: int, now: dt.datetime) -> dict[str, Any] | None:
    """Return the data of a task's page; None if the task is not the user's, unless they may view all results."""
    tasks = Result.objects.select_related("workunit__app", "app", "host", "app_version__platform", "app_version__app")
    if not user.has_perm(SEES_ALL):
        tasks = tasks.filter(user=user)
    task = tasks.filter(pk=pk).first()
    if task is None:
        return None
    return {
        "task": task,
        "workunit": task.workunit,
        "state": state_text(task, now),
        "exit_text": reason_text(task),
        "mine": task.user_id == user.pk,
        "replicas": _replicas(task.workunit, user, now),
    }


def find_task(user: User, name: str) -> int | None:
    """Return the id of a task that `read_task_page` shows this user; None if there is none of this name."""
    tasks = Result.objects.filter(name=name.replace("\0", ""))
    if not user.has_perm(SEES_ALL):
        tasks = tasks.filter(user=user)
    return tasks.values_list("pk", flat=True).first()


def read_workunit_page(user: User, pk: int, now: dt.datetime) -> dict[str, Any] | None:
    """Return the data of a workunit's page; None if the user has no task of it, unless they may view all results."""
    workunit = Workunit.objects.select_related("app", "batch").filter(pk=pk).first()
    if workunit is None:
        return None
    replicas = _replicas(workunit, user, now)
    if not (user.has_perm(SEES_ALL) or any(row.mine for row in replicas)):
        return None
    is_secret = _is_secret(workunit, user)
    return {"workunit": workunit, "replicas": replicas, "errors": _errors(workunit), "is_secret": is_secret}


def _is_secret(workunit: Workunit, user: User) -> bool:
    """Whether the user must not yet know how many computers work on it.

    Anyone who knows which jobs are spot-checked could make up the outputs of the others.
    """
    is_decided = workunit.canonical_result_id is not None or workunit.error_mask != 0
    return workunit.app.adaptive_replication and not is_decided and not user.has_perm(SEES_ALL)


def _replicas(workunit: Workunit, user: User, now: dt.datetime) -> list[TaskRow]:
    tasks = _listed(Result.objects.filter(workunit=workunit)).order_by("pk")
    if _is_secret(workunit, user):
        tasks = tasks.filter(user=user)
    return [TaskRow(task, state_text(task, now), task.user_id == user.pk) for task in tasks[:MAX_REPLICAS_SHOWN]]


def read_parts(task: Result) -> list[ResultPart]:
    """Return what was credited while it ran, newest first."""
    return list(task.parts.order_by("-pk")[:MAX_PARTS_SHOWN])


def _errors(workunit: Workunit) -> list[str]:
    return [str(text) for error, text in WORKUNIT_ERRORS.items() if workunit.error_mask & error]
