"""Background tasks of credit; each is safe to run twice."""

from __future__ import annotations

from dataclasses import asdict
from typing import Final

import structlog
from celery import shared_task
from django.conf import settings

from credit.changes import effects
from credit.export import run as export
from credit.figures import outcomes
from credit.models import App
from credit.statistics import feeder, pairs, thinning
from credit.validator import settled_parts, worker
from portal.celery import is_full
from portal.databases.clocks import database_now

log = structlog.get_logger(__name__)

EXPORT_SECS: Final = 6 * 3600
"""Far more than an export of millions takes."""


@shared_task
def start_validators() -> None:
    """Start a validator for each slot of each app with work, every few seconds.

    One that finds no free slot ends at once.
    """
    for app in worker.apps_to_validate(database_now()):
        for _ in range(settings.VALIDATORS_PER_APP):
            _start(app)


@shared_task
def validate(app_id: int) -> None:
    """Run passes of an app's validator until nothing waits; after a while it requeues itself behind other tasks."""
    app = App.objects.filter(pk=app_id).first()
    if app is not None and worker.run_until_idle(app, settings.VALIDATOR_RUN_SECS):
        _start(app)


@shared_task
def feed() -> None:
    """Update the scales and lowest averages, every ten minutes."""
    report = feeder.feed(database_now())
    log.info("feeder_run", **asdict(report))


@shared_task
def settle_parts() -> None:
    """Settle provisional partial credit, every ten minutes."""
    log.info("parts_settled", **asdict(settled_parts.settle_parts(database_now())))


@shared_task
def count_pairs() -> None:
    """Update the lists of pairs that confirm each other. Hourly."""
    log.info("pairs_counted", listed=pairs.count_all(database_now()))


@shared_task
def thin_snapshots() -> None:
    """Thin out old snapshots and merge hours of results into days. Daily."""
    now = database_now()
    log.info("snapshots_thinned", deleted=thinning.thin_snapshots(now))
    outcomes.join_hours(now)


@shared_task(time_limit=EXPORT_SECS)
def export_statistics() -> None:
    """Export the statistics for sites that add up credit over projects. Daily; a second run ends at once."""
    export.export()


@shared_task
def measure_changes() -> None:
    """Measure the effects of recent changes. Daily."""
    log.info("changes_measured", changes=effects.measure_recent(database_now()))


def _start(app: App) -> None:
    queue = f"validator.{app.name}" if app.name in settings.VALIDATOR_QUEUES else validate.app.conf.task_default_queue
    if not is_full(queue):
        validate.apply_async((app.pk,), queue=queue)
