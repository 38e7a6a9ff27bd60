"""Reported cases in words: a title, and the observation. The result of each run is a number of its figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from django.template.defaultfilters import floatformat
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from emulator.files.reported_cases import CaseFigure
from portal.templatetags.display import count, percent

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

CASE_TEXTS: Final[dict[int, tuple[_StrPromise, _StrPromise]]] = {
    1941: (
        _("64 CPUs and a backup project that answers every five minutes"),
        _(
            "The main project had no work. The client asked the backup project for what was needed at that moment "
            "only, and then had to wait for five minutes, while more tasks ended than it had got. Since 2026 it asks "
            "for one task at a time."
        ),
    ),
    5079: (
        _("GPUs idle while CPU tasks are in danger"),
        _(
            "A week with far too much CPU work: all CPUs ran tasks at high priority, and GPU tasks, which need a CPU "
            "each, did not run at all."
        ),
    ),
    5306: (
        _("A task of a minute waits behind one that is late already"),
        _(
            "A task with 40 seconds to go was left, and became late, too, while the client ran another that was past "
            "its deadline."
        ),
    ),
    5589: (
        _("Two backup projects"),
        _(
            "Projects of share 0 get work only when the others have none, all of them alike. Volunteers would like to "
            "say which of them comes first: here a scenario’s projects can have priorities, in BOINC they cannot."
        ),
    ),
    6745: (
        _("Tasks of two threads on three CPUs"),
        _(
            "With three CPUs allowed, one task of two threads ran and one CPU idled: the tasks that waited filled the "
            "work buffer, so no other project was asked."
        ),
    ),
    1211: (
        _("Tasks that take half of a GPU"),
        _("The last task of a project ran on half of the GPU, and no work was requested for the other half."),
    ),
    4117: (
        _("Two projects that may run two tasks each"),
        _(
            "With limits in app_config.xml, the client lost track of what it had, and fetched far more work than its "
            "buffer holds."
        ),
    ),
    7010: (
        _("A backup project that may run one task at once"),
        _(
            "As soon as the limit was read, the client fetched a task of the backup project every minute. Twenty were "
            "waiting where one was expected."
        ),
    ),
    783: (
        _("The first clients with CUDA"),
        _(
            "Eight CPUs, of which two, then four, then six idled: the client did not ask the project that had work "
            "for them."
        ),
    ),
    912: (
        _("A GPU waits until its project has its turn"),
        _(
            "When it was time for another project, the task on the GPU was stopped, too, though no other project "
            "could use it: the GPU idled half of the time. The report names no version; debts counted like this "
            "before 6.6."
        ),
    ),
    839: (
        _("Suspended tasks"),
        _("Suspended tasks were counted as work that is there, so nothing was requested, and CPUs idled."),
    ),
    522: (
        _("No network at weekends"),
        _(
            "Tasks that were due on Sunday could only be reported on Monday. The client did not take its own network "
            "hours into account."
        ),
    ),
    3776: (
        _("Tasks of 700 MB on 2 GB"),
        _(
            "A third large task was started and stopped again, minute by minute, for lack of memory, while small "
            "tasks that would have fitted waited."
        ),
    ),
    5026: (
        _("Tasks of 7 GB fill the buffer"),
        _(
            "Only four of the large tasks fit in 32 GB. The other twenty CPUs idled, because the buffer was full and "
            "the project with small tasks was not asked."
        ),
    ),
    4396: (
        _("One task at a time, and no buffer"),
        _(
            "With share 0 and no buffer, the next task is to be fetched when the one before has ended. Since a "
            "change it was fetched three minutes earlier."
        ),
    ),
    4322: (
        _("An app that may run one task at once"),
        _("With more of its tasks waiting than may run, the client requested work on and on, far beyond the buffer."),
    ),
    5749: (
        _("A limit that is not reached"),
        _("Four tasks of two CPUs may run at once; two ran and twelve CPUs idled, as the buffer counted as full."),
    ),
    4780: (
        _("Tasks of one CPU beside tasks of all CPUs"),
        _(
            "The last tasks of one CPU waited while tasks of all CPUs ran, until they were in danger. Then they ran "
            "alone, and some were late."
        ),
    ),
    1775: (
        _("What waits needs all CPUs"),
        _(
            "Three tasks ran on eight CPUs. Tasks that need all eight were waiting, so the backup project was not "
            "asked, and five CPUs idled."
        ),
    ),
}


def result(figure: str, figures: Mapping[str, Any], projects: Sequence[Mapping[str, Any]]) -> str:
    """Describe the result of a run, such as "12 % idle" or "3 late tasks"."""
    if figure == CaseFigure.IDLE:
        return gettext("%(part)s idle") % {"part": percent(figures["idle"])}
    if figure == CaseFigure.LATE:
        late = sum(row["late"] for row in projects)
        return ngettext("%(number)s late task", "%(number)s late tasks", late) % {"number": count(late)}
    if figure == CaseFigure.CONTACTS:
        return gettext("%(number)s contacts per task") % {"number": floatformat(figures["rpcs_per_job"], 2)}
    if figure == CaseFigure.LEAST_PART:
        least = min(row["got_fraction"] for row in projects if row["sent"])
        return gettext("the least gets %(part)s") % {"part": percent(least)}
    waiting = sum(row["sent"] - row["jobs"] for row in projects if row["sent"])
    return ngettext("%(number)s task waiting at the end", "%(number)s tasks waiting at the end", waiting) % {
        "number": count(waiting)
    }
