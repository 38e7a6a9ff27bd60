"""Background tasks of the project server; each may run twice, or alongside another run of itself."""

from __future__ import annotations

from time import monotonic
from typing import Final

from celery import shared_task

from credit.models import App
from portal.celery import is_full
from portal.databases.clocks import database_now
from scheduler.examples import demo
from scheduler.files import leftovers
from scheduler.lanes.release import end_jobs_of_gone_targets
from scheduler.lifecycle import assimilator, file_deleter, purge, size_census, transitioner, unsendable
from scheduler.rpc import trickles
from scheduler.submission import batches, drafts

FINISH_SECS: Final = 600
"""Well below the time (CELERY_TASK_TIME_LIMIT) after which a task is killed, and its changes are rolled back."""


@shared_task
def transition() -> None:
    """Time results out, create further ones, and move workunits on."""
    transitioner.run(database_now())


@shared_task(soft_time_limit=FINISH_SECS)
def finish() -> None:
    """Assimilate finished workunits. A function of an app that hangs is interrupted."""
    now = database_now()
    if assimilator.run(now, monotonic() + assimilator.BEGIN_SECS):
        transitioner.run(now)
    for app in assimilator.apps_with_slow_functions():
        if not is_full(finish_slowly.app.conf.task_default_queue):
            finish_slowly.delay(app.pk)


@shared_task(soft_time_limit=FINISH_SECS)
def finish_slowly(app_id: int) -> None:
    """Finish the workunits of an app whose function is slow, in parallel with other apps. A second run ends at once."""
    app, now = App.objects.filter(pk=app_id).first(), database_now()
    if app is not None and assimilator.run_slow(app, now, monotonic() + assimilator.BEGIN_SECS):
        transitioner.run(now)


@shared_task
def delete_files() -> None:
    """Delete the files that are no longer needed."""
    file_deleter.run(database_now())


@shared_task
def delete_leftovers() -> None:
    """Delete what uploads left in the storage."""
    leftovers.delete(database_now())


@shared_task
def archive() -> None:
    """End batches and results whose time is over, purge what was finished long enough ago, discard old drafts."""
    now = database_now()
    batches.expire(now)
    unsendable.run(now)
    end_jobs_of_gone_targets(now)
    purge.run(now)
    drafts.discard_old(now)


@shared_task
def take_size_census() -> None:
    """Sort the computers of apps with size classes by their speed."""
    size_census.run(database_now())


@shared_task
def top_up() -> None:
    """Keep a few jobs in the queue, for the demo."""
    demo.top_up(database_now())


@shared_task(soft_time_limit=trickles.TASK_SECS)
def handle_trickles() -> None:
    """Pass the messages of running jobs to the functions of their apps. One that hangs is interrupted."""
    trickles.handle_waiting(database_now(), monotonic() + trickles.BEGIN_SECS)
