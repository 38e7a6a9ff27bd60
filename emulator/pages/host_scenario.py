"""The scenario of one of a volunteer's computers: hardware, projects, shares and preferences as last known."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any, Final

from django.utils.translation import gettext as _

from accounting.computers.reads import read_host_page
from accounting.engine.choice.facts import CPU as CPU_TYPE
from accounting.models import Project as AttachedProject
from accounting.preferences.save import read_sets
from emulator.engine.scenario import (
    CPU,
    GPU_EFFICIENCY,
    MAX_INSTANCES,
    Availability,
    Preferences,
    Processor,
    Scenario,
    ScenarioError,
)
from emulator.pages import stored_texts
from emulator.pages.drafts import ProjectFacts, draft
from portal.models import Host, User

UNKNOWN_CPU_FLOPS: Final = 4.3e9
UNKNOWN_GPU_FLOPS: Final = 1e12
CPU_JOB_HOURS: Final = 2.0
GPU_JOB_HOURS: Final = 0.5
PERIODS_SECS: Final = 6 * 3600.0


def scenario_of(user: User, host: Host, now: dt.datetime) -> Scenario:
    """The scenario for the computer; its notes list the assumptions.

    Raises ScenarioError for a computer that has not described itself or has no project.
    """
    if not host.ncpus:
        raise ScenarioError("computer", _("%(computer)s has not reported its hardware yet") % {"computer": host.name})
    notes: list[str] = []
    processors = _processors(host, notes)
    page = read_host_page(user, host, now)
    shares = [(line.project, line.share) for line in page.lines if line.share is not None and line.share > 0]
    if not shares:
        raise ScenarioError("projects", _("%(computer)s is not attached to any project yet") % {"computer": host.name})
    kinds = [processor.kind for processor in processors]
    projects = [
        ProjectFacts(project.name, round(100 * share, 4), _job_hours(project, kinds))
        for project, share in shares
        if share
    ]
    assumed = stored_texts.GPU_JOB_TIMES_UNKNOWN if len(kinds) > 1 else stored_texts.JOB_TIMES_UNKNOWN
    notes.append(assumed % {"cpu": f"{CPU_JOB_HOURS:g}", "gpu": f"{GPU_JOB_HOURS:g}"})
    stats = _numbers(page.contact.get("time_stats"))
    return draft(
        processors,
        projects,
        _preferences(user, host),
        name=host.name,
        on=_availability(stats.get("on_frac")),
        active=_availability(stats.get("active_frac")),
        notes=notes,
    )


def _processors(host: Host, notes: list[str]) -> list[Processor]:
    flops = host.p_fpops
    if not flops or flops == 1e9:
        notes.append(stored_texts.SPEED_UNKNOWN % {"gflops": f"{UNKNOWN_CPU_FLOPS / 1e9:g}"})
        flops = UNKNOWN_CPU_FLOPS
    processors = [Processor(CPU, min(host.ncpus, MAX_INSTANCES), flops)]
    for coproc in host.coprocs:
        kind, count = str(coproc.get("type") or ""), int(coproc.get("count") or 0)
        if kind and count > 0 and kind not in [processor.kind for processor in processors]:
            peak = float(coproc.get("peak_flops") or 0) or UNKNOWN_GPU_FLOPS
            processors.append(Processor(kind, min(count, MAX_INSTANCES), peak, GPU_EFFICIENCY))
    return processors


def _job_hours(project: AttachedProject, kinds: list[str]) -> dict[str, float]:
    """By kind; a project that does not list its processor types is assumed to have programs for all."""
    types = {version.processor_type for version in project.versions.all()} or set(kinds) | {CPU_TYPE}
    found = {kind: CPU_JOB_HOURS if kind == CPU else GPU_JOB_HOURS for kind in kinds if kind in types}
    return found or {CPU: CPU_JOB_HOURS}


def _preferences(user: User, host: Host) -> Preferences:
    sets = read_sets(user)
    chosen = sets.get(host.venue) or sets.get("") or {}
    known = Preferences()
    return Preferences(
        work_buf_min_days=chosen.get("work_buf_min_days", known.work_buf_min_days),
        work_buf_additional_days=chosen.get("work_buf_additional_days", known.work_buf_additional_days),
        max_cpus_percent=chosen.get("max_ncpus_pct") or known.max_cpus_percent,
    )


def _numbers(values: Any) -> dict[str, float]:
    if not isinstance(values, dict):
        return {}
    return {
        str(name): float(value)
        for name, value in values.items()
        if isinstance(value, int | float) and math.isfinite(value)
    }


def _availability(fraction: float | None) -> Availability:
    if fraction is None or not 0 < fraction < 1:
        return Availability()
    return Availability(fraction, PERIODS_SECS)
