"""Names of jobs that no restore repeats: computers may still have jobs from before the database was restored."""

from __future__ import annotations

import datetime as dt
from typing import Final

from django.db import connection, transaction
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from credit.models import Batch
from portal.maintenance import restores
from portal.maintenance.jobs import Job
from scheduler.models import Generation
from scheduler.submission import sql


@transaction.atomic
def begin_generation(now: dt.datetime) -> str:
    """Begin a mark for the names of all jobs sent from now on; return the mark.

    Locks the results that are not sent: nobody gets one of them meanwhile. New batches get numbers far from any that
    was used, because names of workunits and input files begin with them.
    """
    latest = Generation.objects.order_by("mark").values_list("mark", flat=True).last()
    # Two within a second must have different marks.
    number = max(int(now.timestamp()), int(latest, 16) + 1 if latest else 0)
    generation = Generation.objects.create(mark=f"{number:08x}", begun_at=now)
    restores.leave_gap(Batch, now)
    with connection.cursor() as cursor:
        cursor.execute(sql.RENAME_UNSENT)
    return generation.mark


NAMES: Final = Job(
    "rename_jobs",
    _("Names of jobs"),
    _(
        "After the database was restored from a backup: gives new batches, and all jobs that are not sent yet, names "
        "that no lost job had."
    ),
    lambda: [f"Names of jobs that are sent from now on end in _r{begin_generation(timezone.now())}."],
    is_check=False,
    after_restore=True,
)
