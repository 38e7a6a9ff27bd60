"""The project server's figures on the dashboard: its retry queue, and waiting messages of jobs."""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext_lazy as _

from portal.dashboard.registry import Daemon, Figure, FigureQuery, Metric, Part
from portal.dashboard.rules import above, grows
from portal.languages.sentences import in_english
from scheduler.models import Step

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


def _steps() -> dict[str, str]:
    return {step.value: in_english(step.label) for step in Step}


RETRY_QUEUE: Final = FigureQuery(
    'SELECT step AS key, count(*) AS "services.retry_queue" FROM scheduler_retryentry GROUP BY step',
    _steps,
    metrics=(
        Metric(
            "services.retry_queue",
            "cobblestone_workunits_set_aside",
            "Workunits that made a background step fail.",
            "step",
        ),
    ),
)
TRICKLES: Final = FigureQuery(
    'SELECT count(*) AS "services.trickles" FROM scheduler_trickle WHERE handled_at IS NULL',
    metrics=(
        Metric("services.trickles", "cobblestone_trickles_to_handle", "Messages of jobs that wait to be handled."),
    ),
)
PART: Final = Part("services", FIGURES, [RETRY_QUEUE, TRICKLES], words=_steps().values(), daemons=DAEMONS)
