"""Background tasks of containers; each may run twice."""

from __future__ import annotations

from celery import shared_task

from extras.containers import unused
from portal.databases.clocks import database_now
from scheduler.models import StoredFile


@shared_task
def delete_unused_files() -> None:
    """Delete the files that neither an image nor a job needs."""
    unused.delete(StoredFile.objects.all(), database_now())
