"""Ask projects elsewhere what became of tasks, many with one question. Nothing is asked in a transaction.

The question is BOINC's (result_status.php?names=…), and this site answers it too (scheduler/web_rpcs/results.py). The
first answer shows whether a project supports it: one that does not is left alone for a month, and only its statistics
count. One that has answered once, or reports an error, is only asked less often.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import urlencode

import structlog
from django.db import transaction
from django.db.models import Q

from accounting.engine.client_tasks import FIRST_WAIT, LONGEST_WAIT, TaskCreditState
from accounting.models import FollowedTask, Project, TaskSource
from accounting.running_tasks.follow import due_tasks, note_answers
from accounting.running_tasks.links import web_base
from accounting.wire.project_replies import ProjectRefused
from accounting.wire.task_status import LIMITS as REPLY_LIMITS
from accounting.wire.task_status import TaskStatus, parse_task_statuses
from portal.fetch.errors import FetchError, StatusError
from portal.fetch.fetcher import FetchLimits, fetch
from portal.languages.messages import Message
from portal.wire.scanner import ProtocolError

log = structlog.get_logger("projects")

EVERY: Final = dt.timedelta(minutes=15)
NAMES_PER_QUESTION: Final = 40
QUERY_CHARS: Final = 3500
"""Less than the longest address that is asked, and than what servers take."""
QUESTIONS_PER_RUN: Final = 5
WITHOUT_FOR: Final = dt.timedelta(days=30)
PROJECTS_PER_RUN: Final = 100
_LIMITS: Final = FetchLimits(wire_bytes=REPLY_LIMITS.body_bytes, body_bytes=REPLY_LIMITS.body_bytes, total_secs=20)
# Statuses by which a server says that it has no such page; anything else may be temporary.
_NOT_THERE: Final = frozenset({401, 403, 404, 405, 410})


def due_projects(now: dt.datetime) -> list[int]:
    """Return projects with tasks to ask about, except those not yet asked about themselves, and this very site."""
    due = (
        Project.objects.filter(Q(task_source=None) | Q(task_source__ask_after__lte=now), profile__isnull=False)
        .filter(pk__in=FollowedTask.objects.filter(ask_after__lte=now).values("project"))
        .exclude(pk__in=Project.served_here())
    )
    return list(due.order_by("task_source__ask_after", "pk").values_list("pk", flat=True)[:PROJECTS_PER_RUN])


def ask(project_id: int, now: dt.datetime) -> int:
    """Ask a project about the tasks that are due; return how many it answered. Runs of one project do not overlap."""
    project = _take(project_id, now)
    if project is None:
        return 0
    most = QUESTIONS_PER_RUN * NAMES_PER_QUESTION
    names = dict.fromkeys(due_tasks(project_id, now).values_list("name", flat=True)[: 2 * most])
    answered = 0
    try:
        for _, some in zip(range(QUESTIONS_PER_RUN), _questions(names), strict=False):
            answered += _ask_about(project, some, now)
    except FetchError as error:
        is_without = isinstance(error, StatusError) and error.status in _NOT_THERE
        _note_problem(project, now, error.message, is_without=is_without)
    except ProjectRefused as refusal:
        _note_problem(project, now, Message("tasks_refused", words=refusal), is_without=False)
    except ProtocolError as error:
        _note_problem(project, now, Message("tasks_not_in_answer", fault=error.message), is_without=True)
    else:
        TaskSource.objects.filter(project=project).update(answered_at=now, failures=0, problem=None)
    return answered


def _take(project_id: int, now: dt.datetime) -> Project | None:
    """Take the project, unless it was asked just now. Its next time is set first, so it cannot stop a worker twice."""
    TaskSource.objects.bulk_create([TaskSource(project_id=project_id, ask_after=now)], ignore_conflicts=True)
    if not TaskSource.objects.filter(project=project_id, ask_after__lte=now).update(ask_after=now + EVERY):
        return None
    return Project.objects.select_related("profile", "task_source").get(pk=project_id)


def _questions(names: Iterable[str]) -> Iterator[list[str]]:
    """Group the names so that each group fits into one address."""
    group: list[str] = []
    for name in names:
        if len(group) == NAMES_PER_QUESTION or len(urlencode({"names": ",".join([*group, name])})) > QUERY_CHARS:
            yield group
            group = []
        group.append(name)
    if group:
        yield group


def _ask_about(project: Project, names: list[str], now: dt.datetime) -> int:
    query = urlencode({"names": ",".join(names)})
    body = fetch(f"{web_base(project)}result_status.php?{query}", limits=_LIMITS).body
    statuses = parse_task_statuses(body, frozenset(names))
    with transaction.atomic():
        due = due_tasks(project.pk, now).filter(name__in=names).select_for_update(skip_locked=True)
        # Tasks missing from the answer stay as they are, but wait, so that they do not hold up others.
        note_answers(due, lambda task: statuses.get(task.name, TaskStatus(TaskCreditState(task.standing))), now)
    return len(statuses)


def _note_problem(project: Project, now: dt.datetime, problem: Message, *, is_without: bool) -> None:
    source = project.task_source
    # One that has answered before has the page, whatever it says now.
    is_without = is_without and source.answered_at is None
    wait = WITHOUT_FOR if is_without else min(FIRST_WAIT * (1 << min(source.failures, 10)), LONGEST_WAIT)
    TaskSource.objects.filter(project=project).update(
        failures=0 if is_without else min(source.failures + 1, 1000), problem=problem, ask_after=now + wait
    )
    log.info("project_not_asked_about_tasks", project=project.name, reason=str(problem))
