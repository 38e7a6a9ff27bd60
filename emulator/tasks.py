"""Background tasks of the emulator; each may run twice."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from emulator.runs import worker


@shared_task
def carry_out(run_id: int) -> None:
    worker.execute_run(run_id)


@shared_task
def read_upload(experiment_id: int) -> None:
    worker.read_upload(experiment_id)


@shared_task
def look_after_runs() -> None:
    """Send again runs whose worker, or whose message, was lost."""
    for run_id in worker.requeue_lost(timezone.now()):
        carry_out.delay(run_id)
