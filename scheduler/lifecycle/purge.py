"""The purge: moves finished workunits and their tasks into the archive, where their owners still find them.

The archive keeps all columns of a task but what it wrote to stderr and which files it delivered, so why it was granted
what it was can be explained for ever. Locks: workunits by id, SKIP LOCKED. One that cannot be moved is set aside
(`scheduler.lifecycle.retry_queue`).
"""

from __future__ import annotations

import datetime as dt
from functools import partial
from typing import Any, Final

from django.conf import settings
from django.db import connection, models

from credit.models import Result, Workunit
from portal.models import User
from scheduler.lifecycle.retry_queue import IS_SET_ASIDE, Batch, run_batches
from scheduler.models import ArchivedTask, Step

BATCH: Final = 500
# Nothing of a purged task may still come: neither a report that counts nor a transition.
_DUE: Final = f"""
SELECT w.id FROM credit_workunit w
 WHERE w.file_delete_state = 2 AND w.assimilated_at < %(before)s AND w.transition_at IS NULL AND NOT w.need_validate
   AND NOT EXISTS (SELECT 1 FROM credit_result r WHERE r.workunit_id = w.id AND r.server_state <> 5)
   AND NOT {IS_SET_ASIDE.format(workunit="w.id")}
 ORDER BY w.assimilated_at LIMIT %(limit)s FOR UPDATE OF w SKIP LOCKED
"""
_ARCHIVE_WORKUNITS: Final = """
INSERT INTO scheduler_archivedworkunit (id, app_id, batch_id, name, error_mask, facts, archived_at)
SELECT w.id, w.app_id, w.batch_id, w.name, w.error_mask,
       to_jsonb(w) - 'input_files' - 'output_files' - 'canonical_result_id', %(now)s
  FROM credit_workunit w WHERE w.id = ANY(%(ids)s)
"""
_ARCHIVE_TASKS: Final = """
INSERT INTO scheduler_archivedtask (id, workunit_id, user_id, host_id, app_version_id, facts)
SELECT r.id, r.workunit_id, r.user_id, r.host_id, r.app_version_id,
       to_jsonb(r) - 'user_id' - 'host_id' - 'app_version_id' - 'stderr_text' - 'outputs' - 'output_digest'
  FROM credit_result r WHERE r.workunit_id = ANY(%(ids)s)
"""
# By hand, as the database knows no cascades; the canonical result may go before its workunit, as its key is deferred.
_DELETE: Final = (
    "DELETE FROM scheduler_upload u USING credit_result r WHERE u.result_id = r.id AND r.workunit_id = ANY(%(ids)s)",
    "DELETE FROM scheduler_trickle t USING credit_result r WHERE t.result_id = r.id AND r.workunit_id = ANY(%(ids)s)",
    "DELETE FROM scheduler_setaside WHERE workunit_id = ANY(%(ids)s)",
    "DELETE FROM credit_result WHERE workunit_id = ANY(%(ids)s)",
    "DELETE FROM credit_workunit WHERE id = ANY(%(ids)s)",
)


def run(now: dt.datetime) -> int:
    """Archive what has been finished for long enough; how many workunits that were."""
    return run_batches(Step.ARCHIVE, now, BATCH, partial(_move, now))


def _move(now: dt.datetime, batch: Batch) -> int:
    """All of a workunit moves, or nothing."""
    before = now - dt.timedelta(days=settings.JOBS_KEPT_DAYS)
    with connection.cursor() as cursor:
        cursor.execute(_DUE, {"before": before, "limit": batch.limit, "now": now, "step": Step.ARCHIVE.value})
        batch.ids = [row[0] for row in cursor.fetchall()]
        if batch.ids:
            for statement in (_ARCHIVE_WORKUNITS, _ARCHIVE_TASKS, *_DELETE):
                cursor.execute(statement, {"ids": batch.ids, "now": now})
        return len(batch.ids)


def read_archived(user: User, *, before: int | None, limit: int) -> list[Result]:
    """The user's archived tasks below the id ``before``, newest first, as they were; none of them can be saved.

    Each has its workunit, app, host and version beside it, so that pages of tasks show it like any other.
    """
    tasks = ArchivedTask.objects.filter(user=user).select_related(
        "workunit__app", "host", "app_version__platform", "app_version__app"
    )
    if before is not None:
        tasks = tasks.filter(pk__lt=before)
    return [_revived(task) for task in tasks.order_by("-pk")[:limit]]


def read_archived_task(user: User, pk: int) -> Result | None:
    """One archived task of the user's own; operators may see each."""
    tasks = ArchivedTask.objects.select_related("workunit__app", "host", "app_version__platform", "app_version__app")
    task = (tasks if user.is_staff else tasks.filter(user=user)).filter(pk=pk).first()
    return _revived(task) if task is not None else None


def _revived(task: ArchivedTask) -> Result:
    result = Result(**_values(Result, task.facts))
    result.user_id = task.user_id
    result.host, result.app_version = task.host, task.app_version
    result.workunit = Workunit(**_values(Workunit, task.workunit.facts))
    result.workunit.app = result.app = task.workunit.app
    return result


def _values(model: type[models.Model], facts: dict[str, Any]) -> dict[str, Any]:
    """Columns as Python has them; JSON has its own way to write times."""
    fields = {field.column: field for field in model._meta.concrete_fields}
    return {
        fields[name].attname: fields[name].to_python(value)
        for name, value in facts.items()
        if name in fields and not fields[name].is_relation
    }
