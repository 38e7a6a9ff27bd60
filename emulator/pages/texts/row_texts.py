"""The rows of a run's tables in words, in the visitor's language. Files have the same rows in English (downloads)."""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from django.template.defaultfilters import floatformat
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from emulator.engine.replay import is_of_the_policy
from emulator.engine.timeline.reasons import Reason
from emulator.engine.timeline.results import HostState
from emulator.pages.texts import decision_texts
from emulator.pages.texts.durations import duration
from emulator.runs.packed_timeline import Packed
from portal.templatetags.display import significant

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

NAMED_MAX: Final = 12
JOB_ROWS_MAX: Final = 200
_STATES: Final[dict[HostState, _StrPromise]] = {
    HostState.COMPUTING: gettext_lazy("Can run tasks"),
    HostState.NO_GPU: gettext_lazy("Can run tasks, but not on GPUs"),
    HostState.INACTIVE: gettext_lazy("On, but not allowed to run tasks"),
    HostState.OFF: gettext_lazy("Off"),
    HostState.OUTSIDE_HOURS: gettext_lazy("On, but preferences do not let tasks run at this hour"),
    HostState.IN_USE: gettext_lazy("In use, so that no tasks run"),
    HostState.ON_BATTERIES: gettext_lazy("On battery, so that no tasks run"),
    HostState.EXCLUSIVE_APP: gettext_lazy("An exclusive application runs, so that no tasks run"),
}


def decision(packed: Packed, number: int, sentences: Mapping[Reason, str] | None = None) -> dict[str, Any]:
    """Put a decision into words; ``sentences``: other ones than those of the active language."""
    kind = packed.texts["kinds"][int(packed["decisions.processor"][number])]
    project = packed.texts["projects"][int(packed["decisions.project"][number])]
    job = int(packed["decisions.job"][number])
    reason = Reason(int(packed["decisions.reason"][number]))
    secs = float(packed["decisions.amount"][number])
    return {
        "at_secs": float(packed["decisions.at_secs"][number]),
        "number": number,
        "has_simulation": is_of_the_policy(int(packed["decisions.kind"][number]), reason),
        "project": project,
        "project_number": int(packed["decisions.project"][number]),
        "job": job if job >= 0 else "",
        "processor": kind,
        "why": decision_texts.in_words(
            sentences[reason] if sentences else decision_texts.sentence(reason),
            job=job,
            project=project,
            kind=kind,
            # Files have seconds, which programs read.
            time=f"{secs:.0f} s" if sentences else duration(secs),
        ),
    }


def block(packed: Packed, number: int) -> dict[str, Any]:
    """Put a stretch of running into words."""
    lane, project = int(packed["blocks.lane"][number]), int(packed["blocks.project"][number])
    processor = " ".join(str(part) for part in packed.texts["lanes"][lane]) if lane >= 0 else _("Beside a GPU task")
    facts = {
        "processor": processor,
        "job": int(packed["blocks.job"][number]),
        "end": run_time(float(packed["blocks.end_secs"][number])),
    }
    if packed["blocks.by_deadline"][number]:
        why = _("%(processor)s: task %(job)s until %(end)s, to meet its deadline") % facts
    else:
        why = _("%(processor)s: task %(job)s until %(end)s") % facts
    return _row(packed, "blocks.start_secs", number, project, why)


def rpc(packed: Packed, number: int) -> dict[str, Any]:
    """Put a contact with a project into words."""
    got, reported = int(packed["rpcs.got"][number]), int(packed["rpcs.reported"][number])
    asked = float(packed["rpcs.asked_secs"][number])
    parts = []
    if asked:
        asked_for = ngettext(
            "Asked for %(secs)s s of work and got %(got)s task",
            "Asked for %(secs)s s of work and got %(got)s tasks",
            got,
        )
        parts.append(asked_for % {"secs": f"{asked:.0f}", "got": got})
    if reported:
        parts.append(ngettext("Reported %(number)s task", "Reported %(number)s tasks", reported) % {"number": reported})
    if not packed["rpcs.answered"][number]:
        parts.append(_("No answer"))
    why = "; ".join(parts) or _("Contacted")
    return _row(packed, "rpcs.at_secs", number, int(packed["rpcs.project"][number]), why)


def miss(packed: Packed, number: int) -> dict[str, Any]:
    """Put a late task into words."""
    late = duration(float(packed["misses.late_secs"][number]))
    job = int(packed["misses.job"][number])
    why = _("Task %(job)s is late: %(late)s past its deadline") % {"job": job, "late": late}
    return _row(packed, "misses.at_secs", number, int(packed["misses.project"][number]), why)


def level(packed: Packed, number: int) -> dict[str, Any]:
    """Put the work in the buffer and the projects' standing at a moment into words."""
    kinds, projects = packed.texts["kinds"], packed.texts["projects"]
    stored = [
        f"{kind} {_hours(float(line[number]))}" for kind, line in zip(kinds, packed["levels.buffer_secs"], strict=True)
    ]
    standing = [
        f"{name} {significant(float(line[number]))}"
        for name, line in zip(projects[:NAMED_MAX], packed["levels.standing"], strict=False)
    ]
    if more := len(projects) - len(standing):
        standing.append(_("%(number)s more") % {"number": more})
    why = _("Buffer: %(buffer)s; standing: %(standing)s") % {
        "buffer": ", ".join(stored),
        "standing": ", ".join(standing),
    }
    return {"at_secs": float(packed["levels.at_secs"][number]), "project": "", "project_number": 0, "why": why}


def state(packed: Packed, number: int) -> dict[str, Any]:
    """Put the computer's availability from a moment on into words."""
    why = str(_STATES[HostState(int(packed["states.state"][number]))])
    return {"at_secs": float(packed["states.from_secs"][number]), "project": "", "project_number": 0, "why": why}


def of_job(packed: Packed, job: int) -> list[dict[str, Any]]:
    """Return all decisions about a job and all stretches in which it ran, in order of time: rows as above, at most
    JOB_ROWS_MAX.
    """
    made = [decision(packed, int(row)) for row in np.flatnonzero(packed["decisions.job"] == job)[:JOB_ROWS_MAX]]
    ran = [block(packed, int(row)) for row in np.flatnonzero(packed["blocks.job"] == job)[:JOB_ROWS_MAX]]
    return sorted([*made, *ran], key=itemgetter("at_secs"))[:JOB_ROWS_MAX]


def _hours(secs: float) -> str:
    return f"{floatformat(secs / 3600, 2)} h"


def _row(packed: Packed, times: str, number: int, project: int, why: str) -> dict[str, Any]:
    return {
        "at_secs": float(packed[times][number]),
        "project": packed.texts["projects"][project],
        "project_number": project,
        "why": why,
    }


def run_time(secs: float) -> str:
    """Return seconds from the start of a run as "day 3, 04:05:06"."""
    whole = int(secs)
    time = f"{whole // 3600 % 24:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"
    return _("day %(day)s, %(time)s") % {"day": whole // 86400, "time": time}
