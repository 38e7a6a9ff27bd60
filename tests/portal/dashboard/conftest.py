from __future__ import annotations

import datetime as dt

import pytest
from django.utils import timezone

from accounting.ledger.partitions import create_months
from portal.dashboard import record
from portal.ops import heartbeats, metrics
from portal.periodic.lease import Lease


@pytest.fixture
def running(db: None) -> None:
    """All processes live, and all tasks have run."""
    heartbeats.tell("web", "a:1")
    heartbeats.tell("worker", "celery@a", ["celery", "requested"])
    heartbeats.tell("beat", "a:2")
    Lease("a:2", secs=60).ask()
    for run in metrics.task_runs():
        metrics.count_task(run.task, succeeded=True, elapsed_secs=0.5)


@pytest.fixture
def taken(db: None, running: None) -> None:
    """The figures of a moment ago, of a site whose tasks have done their work."""
    today = timezone.now().date()
    create_months(today, today + dt.timedelta(days=92))
    record.take_all(timezone.now())
