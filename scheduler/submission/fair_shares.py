"""What a submitter may submit, and its position in the queue, so that submitters share the computers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from django.db import connection

from credit.models import Batch
from portal.models import User
from scheduler.engine.lanes import is_of_size
from scheduler.engine.submission import fair_queue
from scheduler.engine.submission.fair_queue import Queue, QueueKey, Window
from scheduler.engine.submission.submitter_limits import RequestedJob, UnderWay, excess
from scheduler.models import Submitter, SubmitterPlace
from scheduler.submission import sql
from scheduler.wire.job_fields import MOST_PRIORITY, JobError, SubmittedJob


def admit(batch: Batch, jobs: Sequence[SubmittedJob]) -> Mapping[QueueKey, Window]:
    """Return where in the queues the results of these jobs lie. JobError if their owner may not submit them.

    Locks the owner's row, so that their submissions are admitted one after the other. Jobs without an owner have no
    window: they lie anywhere in the queue.
    """
    if batch.owner is None or not jobs:
        return {}
    Submitter.objects.get_or_create(user=batch.owner)
    submitter = Submitter.objects.select_for_update(no_key=True).get(user=batch.owner)
    requested = [_requested_job(job) for job in jobs]
    if not sets_limits(batch.owner):
        _check(submitter, batch, requested)
    return _windows(submitter, batch.app_id, jobs)


def sets_limits(user: User) -> bool:
    """Whether the person may change everybody's limits, and therefore has none."""
    return user.has_perm("scheduler.change_submitter")


def highest_priority(user: User) -> int:
    """Return the highest priority that the person may give jobs."""
    row = Submitter.objects.filter(user=user).first() or Submitter(user=user)
    return MOST_PRIORITY if sets_limits(user) else row.max_priority


def _requested_job(job: SubmittedJob) -> RequestedJob:
    fields = job.fields
    return RequestedJob(fields["fpops_est"], fields["target_nresults"], fields["priority"], fields["delay_bound_secs"])


def _check(submitter: Submitter, batch: Batch, requested: Sequence[RequestedJob]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql.UNDER_WAY, {"owner": submitter.pk})
        fault = excess(submitter.limits(), batch.app.name, requested, UnderWay(*cursor.fetchone()))
    if fault is not None:
        raise JobError(fault.field, fault.message)


def _windows(submitter: Submitter, app_id: int, jobs: Iterable[SubmittedJob]) -> dict[QueueKey, Window]:
    """Return where the jobs go in the queues. The submitter's next submission begins behind them."""
    fpops: dict[QueueKey, list[float]] = {}
    for job in jobs:
        lane = job.fields["lane"]
        queue = QueueKey(job.fields["priority"], lane if is_of_size(lane) else 0)
        fpops.setdefault(queue, []).extend([job.fields["fpops_est"]] * job.fields["target_nresults"])
    queues = {"priorities": [queue.priority for queue in fpops], "lanes": [queue.lane for queue in fpops]}
    values = {"app": app_id, "submitter": submitter.pk, **queues}
    windows = {}
    with connection.cursor() as cursor:
        cursor.execute(sql.READ_PLACES, values)
        for priority, lane, newest, head, last, end in cursor.fetchall():
            queue = QueueKey(priority, lane)
            windows[queue] = fair_queue.window(Queue(newest, head, last), end, fpops[queue], submitter.share)
        cursor.execute(sql.FORGET_PLACES, values)
    SubmitterPlace.objects.bulk_create(
        [
            SubmitterPlace(submitter=submitter, app_id=app_id, end=window.end, **queue._asdict())
            for queue, window in windows.items()
        ],
        update_conflicts=True,
        unique_fields=["submitter", "app", "lane", "priority"],
        update_fields=["end"],
    )
    return windows
