"""The dashboard's figure of checks: the differences that the last run of each found."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Final

from django.utils.translation import gettext_lazy as _

from portal.dashboard.registry import Figure, Part, Sample
from portal.dashboard.rules import above
from portal.maintenance.jobs import jobs
from portal.models import MaintenanceRun


def _title(job: str) -> str:
    return str(jobs()[job].title) if job in jobs() else job


FIGURES: Final = (
    Figure(
        "services.check_differences",
        _("Differences found by checks"),
        series=_("check"),
        about=_(
            "By the last run of each check that was started on the page “Maintenance”; a failed one counts as one."
        ),
        link="admin:portal_maintenancerun_changelist",
        trouble=above(0, _("A check found differences, or failed: {labels}.")),
        label_text=_title,
    ),
)


def differences(now: dt.datetime) -> Iterator[Sample]:
    last = MaintenanceRun.objects.exclude(finished_at=None).order_by("job", "-pk").distinct("job")
    for run in last:
        if run.job in jobs() and (run.failure or jobs()[run.job].is_check):
            yield Sample("services.check_differences", 1 if run.failure else run.nlines, run.job)


PART: Final = Part("services", FIGURES, [differences])
