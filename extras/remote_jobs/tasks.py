"""Background tasks of remote job submission; each may run twice."""

from __future__ import annotations

from celery import shared_task

from extras.remote_jobs import staging
from portal.databases.clocks import database_now


@shared_task
def reap_files() -> None:
    """Delete the staged files that no open batch needs."""
    staging.reap(database_now())
