"""The retry queue: background steps continue even if one workunit makes them fail.

Smaller batches find the workunit, and it waits in the queue. Its row gives the error and the time of the next try.
Operators see such rows in the admin, and can have them retried in the next pass.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import structlog
from celery.exceptions import SoftTimeLimitExceeded
from django.db import InterfaceError, OperationalError, connection, transaction
from django.db.backends.utils import CursorWrapper

from portal.object_storage.errors import StorageUnreachable
from scheduler.lifecycle import sql
from scheduler.models import Step

log = structlog.get_logger(__name__)

SHRINK_FACTOR: Final = 8
"""A failed batch is retried with this fraction of its workunits. After a success the next batch grows again."""
FIRST_RETRY: Final = dt.timedelta(minutes=10)
LAST_RETRY: Final = dt.timedelta(days=1)
"""The delay until the next try doubles up to this."""
_LONGEST_FAULT: Final = 500


@dataclass(slots=True)
class StepBatch:
    """Up to ``limit`` workunits that a step has locked; the step sets ``ids`` as soon as it knows them."""

    limit: int
    ids: list[int] = field(default_factory=list)


def run_batches(step: Step, now: dt.datetime, limit: int, run: Callable[[StepBatch], int]) -> int:
    """Run batch after batch, each in a transaction, until ``run`` returns 0; return the sum of its results.

    A batch that fails is retried in smaller ones; a workunit that fails alone is queued. Raises StorageUnreachable,
    OperationalError and InterfaceError, because no other batch would succeed then, and SoftTimeLimitExceeded, because
    the task's time is up.
    """
    total, size = 0, limit
    while True:
        batch = StepBatch(size)
        try:
            with transaction.atomic():
                done = run(batch)
        except (OperationalError, InterfaceError, SoftTimeLimitExceeded, StorageUnreachable):
            raise
        except Exception as error:
            # Whatever the error is, one workunit must not keep all others waiting.
            log.exception("step_failed", step=step.value, workunits=len(batch.ids))
            if not batch.ids:
                raise
            if len(batch.ids) == 1:
                enqueue(step, {batch.ids[0]: f"{type(error).__name__}: {error}"}, now)
            size = max(1, len(batch.ids) // SHRINK_FACTOR)
            continue
        if not done:
            return total
        total, size = total + done, min(limit, size * SHRINK_FACTOR)


def enqueue(step: Step, faults: Mapping[int, str], now: dt.datetime) -> None:
    """Put workunits into the queue, each time for longer; ``faults``: the error of each, by its id.

    Workunits for which the step is no longer due are skipped.
    """
    if not faults:
        return
    ids = list(faults)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql.LOCK_WORKUNITS_TO_RETRY, {"ids": ids})
        cursor.execute(
            sql.ENQUEUE,
            {
                "step": step.value,
                "now": now,
                "ids": ids,
                "faults": [_clean(fault) for fault in faults.values()],
                "first": FIRST_RETRY.total_seconds(),
                "last": LAST_RETRY.total_seconds(),
            },
        )


def remove(cursor: CursorWrapper, step: Step, ids: Sequence[int]) -> None:
    """Remove workunits from the queue once the step is done."""
    cursor.execute(
        "DELETE FROM scheduler_retryentry WHERE step = %s AND workunit_id = ANY(%s)", [step.value, list(ids)]
    )


def _clean(fault: str) -> str:
    """Make an error's text fit the column: errors may quote anything."""
    return fault.encode(errors="replace").decode().replace("\0", "")[:_LONGEST_FAULT]
