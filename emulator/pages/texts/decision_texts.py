"""A client's decisions in words: one sentence for each reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from django.utils.translation import gettext_lazy as _
from django.utils.translation import override

from emulator.engine.timeline.reasons import Reason

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

_SENTENCES: Final[dict[Reason, _StrPromise]] = {
    Reason.GPU_DEADLINE: _(
        "Task %(job)s runs: %(project)s has a task on the %(kind)s that would or might miss its deadline, and such "
        "tasks run before others, the most urgent first."
    ),
    Reason.CPU_DEADLINE: _(
        "Task %(job)s runs: %(project)s has a task on the CPU that would or might miss its deadline, and such tasks "
        "run before others, the most urgent first."
    ),
    Reason.GPU_PRIORITY: _(
        "Task %(job)s runs: %(project)s has the highest priority of the projects with work for the %(kind)s."
    ),
    Reason.CPU_PRIORITY: _(
        "Task %(job)s runs: %(project)s has the highest priority of the projects with work for the CPU."
    ),
    Reason.SLICE: _("Task %(job)s keeps running: its time slice is not over."),
    Reason.DEBT_KEPT: _("Task %(job)s keeps running: %(project)s has the largest expected future debt."),
    Reason.DEBT_RESUMED: _(
        "Task %(job)s resumes: %(project)s has the largest expected future debt, and this task was preempted."
    ),
    Reason.DEBT_NEW: _(
        "Task %(job)s starts: %(project)s has the largest expected future debt and no task in progress."
    ),
    Reason.DEBT_MID_PERIOD: _(
        "Task %(job)s runs: a CPU became free within the scheduling period, and %(project)s is owed the most."
    ),
    Reason.FETCH_SATURATION: _("%(project)s is asked for work: the %(kind)s is not busy up to the minimum buffer."),
    Reason.FETCH_BESIDE_WIDE: _(
        "%(project)s is asked for work: CPUs are or will be idle beside tasks that need more of them than are free."
    ),
    Reason.FETCH_ALONG: _(
        "%(project)s is asked for work along with a report: it has the highest priority, and the buffer is not full."
    ),
    Reason.FETCH_MAJOR: _(
        "%(project)s is asked for work: a %(kind)s instance will be idle before the connection interval ends."
    ),
    Reason.FETCH_MINOR: _(
        "%(project)s is asked for work: a %(kind)s instance will be idle before the additional buffer ends."
    ),
    Reason.FETCH_STARVED: _("%(project)s is asked for work: it has no task that can run, and it is not overworked."),
    Reason.FETCH_CPU_SHORTFALL: _(
        "%(project)s is asked for work: there is too little for the CPU, and it has the largest long-term debt."
    ),
    Reason.FETCH_FEW_TASKS: _(
        "%(project)s is asked for work: there are too few tasks to keep all CPUs busy up to the minimum buffer."
    ),
    Reason.FETCH_BUFFER: _("%(project)s is asked for work: there is less than the minimum buffer."),
    Reason.FETCH_PROJECT_SHORT: _("%(project)s is asked for work: it has less than its share of the buffer."),
    Reason.PREEMPTED: _("Task %(job)s is preempted."),
    Reason.UNAVAILABLE: _("Task %(job)s stops: the computer is off or in use."),
    Reason.SERVER_DOWN: _("%(project)s does not answer. The next attempt is in %(time)s."),
    Reason.SERVER_DRY: _("%(project)s sent no tasks for the %(kind)s. It is asked again in %(time)s."),
    Reason.SERVER_DEADLINE: _("%(project)s sends no more tasks: a task for the %(kind)s would miss its deadline."),
    Reason.DETACHED: _("Task %(job)s is dropped: the computer detached from %(project)s."),
    Reason.REPORT_DEADLINE: _("%(project)s is contacted: a finished task is close to its deadline."),
    Reason.REPORT_HOUR: _("%(project)s is contacted: a task finished some time ago."),
    Reason.REPORT_MANY: _("%(project)s is contacted: many finished tasks are waiting to be reported."),
    Reason.REPORT_AT_ONCE: _("%(project)s is contacted: finished tasks are reported at once."),
    Reason.JOB_MET: _("Task %(job)s finished in time."),
    Reason.JOB_FAILED: _("Task %(job)s failed. %(project)s is not contacted for %(time)s."),
    Reason.JOB_LATE: _("Task %(job)s finished %(time)s after its deadline."),
    Reason.HARDWARE: _("Task %(job)s stops: the computer’s hardware changes."),
    Reason.OUTSIDE_HOURS: _("Task %(job)s stops: preferences do not let it run at this hour."),
    Reason.IN_USE: _("Task %(job)s stops: the computer is in use."),
    Reason.ON_BATTERIES: _("Task %(job)s stops: the computer runs on its battery."),
    Reason.EXCLUSIVE_APP: _("Task %(job)s stops: an exclusive application runs."),
    Reason.NO_MEMORY: _("Task %(job)s waits: it needs more memory than is left of what preferences allow."),
    Reason.WAS_RUNNING: _("Task %(job)s keeps running: it was running when the emulation began."),
    Reason.CONTACT_ASKED: _("%(project)s is contacted: it asked for that."),
    Reason.JOB_REPORTED_LATE: _("Task %(job)s finished in time but was reported %(time)s after its deadline."),
    Reason.JOB_UNREPORTED: _("Task %(job)s finished in time but has not been reported %(time)s after its deadline."),
    Reason.JOB_UNFINISHED: _("Task %(job)s is not finished %(time)s after its deadline."),
    Reason.OWN_CHOICE: _("Task %(job)s runs: the policy chose it."),
    Reason.OWN_REQUEST: _("%(project)s is asked for work: the policy chose it."),
}


def sentence(reason: Reason) -> str:
    """Return the sentence in the active language; placeholders ``job``, ``project``, ``kind`` and ``time``."""
    return str(_SENTENCES[reason]) if reason in _SENTENCES else ""


def english() -> Mapping[Reason, str]:
    """Return all sentences, for files and for the command line, whatever language the visitor reads."""
    with override("en"):
        return {reason: sentence(reason) for reason in Reason}


def in_words(text: str, *, job: int, project: str, kind: str, time: str) -> str:
    """Return a sentence with the facts of one decision."""
    return text % {"job": job, "project": project, "kind": kind, "time": time}
