"""A computer's record with each of this project's programs, for its owner."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from django.db.models import Q
from django.utils.translation import gettext

from credit.engine import probation
from credit.models import HostAppVersion, ProcessorType
from credit.models.versions import PROCESSOR_TYPES
from portal.extras import HostSection
from portal.models import Host
from scheduler.models import HostRecord, WorkBlock


@dataclass(frozen=True, slots=True)
class ProgramLine:
    """A program on the computer. ``quota`` 0: not set yet; ``turnaround_secs`` None: no valid job yet."""

    app: str
    program: str
    njobs_today: int
    quota: int
    turnaround_secs: float | None
    errors: str
    consecutive_valid: int


def programs_section(host: Host, now: dt.datetime) -> HostSection | None:
    """Build the section in two statements, whatever the number of programs."""
    records = HostAppVersion.objects.filter(host=host).select_related("app", "app_version__platform")
    jobs = _jobs_today(host, now)
    lines: list[object] = [_line(record, jobs) for record in records.order_by("app__name", "-app_version__version_num")]
    return HostSection("scheduler/_host_programs.html", lines) if lines else None


def block_section(host: Host) -> HostSection | None:
    """Explain why operators send the computer no work; None if they do."""
    blocks: list[object] = list(WorkBlock.objects.filter(Q(host=host) | Q(user=host.owner_id)))
    return HostSection("scheduler/_host_block.html", blocks) if blocks else None


def programs_run(host_id: int) -> frozenset[tuple[str, int]]:
    """Return the apps whose programs the computer has run, each with a version's number."""
    records = HostAppVersion.objects.filter(host=host_id).exclude(app_version=None)
    return frozenset(records.values_list("app__name", "app_version__version_num"))


def _line(record: HostAppVersion, jobs: dict[tuple[int, int, str], int]) -> ProgramLine:
    version = record.app_version
    type_ = ProcessorType(version.processor_type if version is not None else record.processor_type)
    return ProgramLine(
        app=str(record.app),
        program=version.number_label
        if version is not None
        else gettext("your own, for %(type)s") % {"type": PROCESSOR_TYPES[type_]},
        njobs_today=jobs.get((record.app_id, record.app_version_id or 0, type_), 0),
        quota=record.max_jobs_per_day,
        turnaround_secs=record.turnaround_avg,
        errors=errors_text(record.error_rate),
        consecutive_valid=record.consecutive_valid,
    )


def _jobs_today(host: Host, now: dt.datetime) -> dict[tuple[int, int, str], int]:
    record = HostRecord.objects.filter(host=host).first()
    if record is None or not probation.counts_for(record.jobs_day, now.astimezone(dt.UTC).date()):
        return {}
    return {(app, version, type_): njobs for app, version, type_, njobs, *_ in record.jobs_of_day}


def errors_text(error_rate: float) -> str:
    """Describe the error rate, which starts at 0.1 and rises by 0.1 with each error."""
    if error_rate < 0.05:
        return gettext("hardly any")
    if error_rate <= 0.1:
        return gettext("few, or too early to tell")
    return gettext("some recently") if error_rate <= 0.3 else gettext("many recently")
