"""What the project server adds to the dashboard: its retry queue, and messages of jobs that wait."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Final

from django.db.models import Count
from django.utils.translation import gettext_lazy as _

from portal.dashboard import registry
from portal.dashboard.registry import Daemon, Figure, Sample, Source
from portal.dashboard.rules import above, grows
from portal.languages.stored import in_english
from scheduler.models import RetryEntry, Step, Trickle

FIGURES: Final = (
    Figure(
        "services.retry_queue",
        _("Retry queue"),
        series=_("step"),
        link="admin:scheduler_retryentry_changelist",
        about=_("Workunits that made a background step fail."),
        trouble=above(0, _("Workunits made a background step fail: {labels}. The retry queue says why.")),
    ),
    Figure(
        "services.trickles",
        _("Unhandled messages of jobs"),
        link="admin:scheduler_trickle_changelist?handled_at__isempty=1",
        trouble=grows(_("More and more messages of jobs are waiting to be handled.")),
    ),
)


DAEMONS: Final = (
    Daemon("scheduler"),
    Daemon("file_upload_handler"),
    Daemon("transitioner", "scheduler.tasks.transition"),
    Daemon("assimilator", "scheduler.tasks.finish"),
    Daemon("file_deleter", "scheduler.tasks.delete_files"),
    Daemon("db_purge", "scheduler.tasks.archive"),
)


def take(now: dt.datetime) -> Iterator[Sample]:
    counts = dict(RetryEntry.objects.order_by().values_list("step").annotate(Count("pk")))
    for step in Step:
        yield Sample("services.retry_queue", counts.get(step.value, 0), in_english(step.label))
    yield Sample("services.trickles", Trickle.objects.filter(handled_at=None).count())


def register() -> None:
    """Called once, when the app is ready, if the site has a project."""
    registry.add_source(Source("services", FIGURES, take))
    registry.words.extend(in_english(step.label) for step in Step)
    registry.daemons.extend(DAEMONS)
