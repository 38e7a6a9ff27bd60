"""The purge: moves finished workunits and their tasks into the archive, where their owners can still find them.

The archive keeps all columns of a task except its stderr and its output files, so a grant can be explained for ever.
Locks: workunits, SKIP LOCKED; then the days of archived tasks, in the order of their key. A workunit that cannot be
moved goes into the retry queue (`scheduler.lifecycle.retry_queue`).
"""

from __future__ import annotations

import datetime as dt
from functools import partial
from typing import Any, Final

from django.conf import settings
from django.db import connection, models, transaction

from credit.models import Result, ResultPart, Workunit
from credit.pages.task_reads import MAX_PARTS_SHOWN, SEES_ALL
from portal.models import User
from scheduler.lifecycle import sql
from scheduler.lifecycle.retry_queue import StepBatch, run_batches
from scheduler.models import ArchivedTask, Step

BATCH: Final = 500
COUNTED_AT_ONCE: Final = 5_000


def run(now: dt.datetime) -> int:
    """Archive workunits that have been finished for long enough; return their number."""
    count_uncounted()
    return run_batches(Step.ARCHIVE, now, BATCH, partial(_move, now))


def count_uncounted() -> int:
    """Add the tasks imported with a moved project to the days of histories; return their number."""
    total = 0
    while True:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(sql.LOCK_UNCOUNTED, {"limit": COUNTED_AT_ONCE})
            ids = [row[0] for row in cursor.fetchall()]
            if not ids:
                return total
            cursor.execute(sql.COUNT_TASKS, {"ids": ids})
        total += len(ids)


def _move(now: dt.datetime, batch: StepBatch) -> int:
    """Move workunits into the archive, each completely or not at all."""
    before = now - dt.timedelta(days=settings.JOBS_KEPT_DAYS)
    with connection.cursor() as cursor:
        cursor.execute(
            sql.LOCK_TO_ARCHIVE, {"before": before, "limit": batch.limit, "now": now, "step": Step.ARCHIVE.value}
        )
        batch.ids = [row[0] for row in cursor.fetchall()]
        if batch.ids:
            for statement in (sql.ARCHIVE_WORKUNITS, sql.ARCHIVE_TASKS, sql.COUNT_ARCHIVED, *sql.DELETE_ARCHIVED):
                cursor.execute(statement, {"ids": batch.ids, "now": now})
        return len(batch.ids)


def read_archived(user: User, *, before: int | None, limit: int) -> list[Result]:
    """Return the user's archived tasks below the id ``before``, newest first, as unsaved copies of the originals.

    Each has its workunit, app, host and version attached, so that pages show it like any other task.
    """
    tasks = ArchivedTask.objects.filter(user=user).select_related(
        "workunit__app", "host", "app_version__platform", "app_version__app"
    )
    if before is not None:
        tasks = tasks.filter(pk__lt=before)
    return [_revived(task) for task in tasks.order_by("-pk")[:limit]]


def read_archived_task(user: User, pk: int) -> Result | None:
    """Return one archived task of the user's own, or of anyone if they may view all results."""
    tasks = ArchivedTask.objects.select_related("workunit__app", "host", "app_version__platform", "app_version__app")
    task = (tasks if user.has_perm(SEES_ALL) else tasks.filter(user=user)).filter(pk=pk).first()
    return _revived(task) if task is not None else None


def read_archived_parts(pk: int) -> list[ResultPart]:
    """Return what was credited while an archived task ran, newest first."""
    task = ArchivedTask.objects.get(pk=pk)
    parts = [ResultPart(**_values(ResultPart, part)) for part in task.facts.get("parts", ())]
    return parts[: -MAX_PARTS_SHOWN - 1 : -1]


def _revived(task: ArchivedTask) -> Result:
    result = Result(**_values(Result, task.facts))
    result.user_id = task.user_id
    result.host, result.app_version = task.host, task.app_version
    result.workunit = Workunit(**_values(Workunit, task.workunit.facts))
    result.workunit.app = result.app = task.workunit.app
    return result


def _values(model: type[models.Model], facts: dict[str, Any]) -> dict[str, Any]:
    """Convert JSON values into the columns' Python values; JSON has its own format of times."""
    fields = {field.column: field for field in model._meta.concrete_fields}
    return {
        fields[name].attname: fields[name].to_python(value)
        for name, value in facts.items()
        if name in fields and not fields[name].is_relation
    }
