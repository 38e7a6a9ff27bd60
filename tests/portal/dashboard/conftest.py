from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

import psycopg
import pytest
from django.utils import timezone

from accounting.ledger.partitions import create_months
from portal.beat import LOCK
from portal.dashboard import record
from portal.databases.params import psycopg_params
from portal.ops import heartbeats, metrics


@pytest.fixture
def running(db: None) -> Iterator[None]:
    """All processes live, and all tasks have run."""
    heartbeats.tell("web", "a:1")
    heartbeats.tell("worker", "celery@a", ["celery", "requested"])
    heartbeats.tell("beat", "a:2")
    for run in metrics.task_runs():
        metrics.count_task(run.task, succeeded=True, elapsed_secs=0.5)
    with psycopg.connect(**psycopg_params() | {"application_name": "a:2"}) as session:
        session.execute("SELECT pg_advisory_lock(%s)", [LOCK])
        yield


@pytest.fixture
def taken(db: None, running: None) -> None:
    """The figures of a moment ago, of a site whose tasks have done their work."""
    today = timezone.now().date()
    create_months(today, today + dt.timedelta(days=92))
    record.take_all(timezone.now())
