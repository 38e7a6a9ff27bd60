"""The examples in words: a title, and a sentence on what each one shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from emulator.files.presets import PRESETS, Preset, preset
from emulator.pages.texts.case_texts import CASE_TEXTS

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

_TEXTS: Final[dict[str, tuple[_StrPromise, _StrPromise]]] = {
    "document-gpu-and-cpu": (
        _("A has only GPU tasks, B has both (6.6, example 1)"),
        _(
            "The goal is equal totals: the whole CPU for B, and three quarters of the GPU for A. The current policy "
            "reaches it. Long-term debt reaches it only without its rule about which projects may accumulate debt."
        ),
    ),
    "document-year-long-job": (
        _("A year-long task with no slack (6.6, example 2)"),
        _(
            "After A’s year, long-term debt gives B the CPU for a year. The current policy forgets the difference "
            "within weeks."
        ),
    ),
    "document-year-long-job-new-project": (
        _("A new project after a year-long task (6.6, example 2, variation)"),
        _("C is attached when A’s task ends. It starts without debt and shares the CPU with B at once."),
    ),
    "document-late-gpu-app": (
        _("A GPU app after a year (6.6, example 3)"),
        _(
            "When B gets a GPU app after a year, A and B share the GPU at once, because a project accumulates "
            "no debt while it is backed off."
        ),
    ),
    "document-two-processors": (
        _("Two processors, shares of 75 and 25 (2005)"),
        _(
            "One processor always runs A. The other alternates between A and B, so A has two tasks in progress at "
            "the same time."
        ),
    ),
    "document-months-long-job": (
        _("Tasks of months beside tasks of hours (2005)"),
        _(
            "A project’s work counts only up to its share, so the client asks B for work even though A’s task fills "
            "the buffer."
        ),
    ),
    "document-shortfall": (
        _("A shortfall of 13 (client scheduling document)"),
        _(
            "Four CPUs have tasks of 4, 6, 7 and 10 hours, and the buffer holds 10 hours. So 13 hours of work are "
            "missing (6 + 4 + 3 + 0), and the first request asks for them."
        ),
    ),
    "s1_two_equal_cpu": (
        _("Two equal projects, four CPUs"),
        _("The simplest case: equal shares, and no deadline is at risk."),
    ),
    "s2_gpu_example1": (
        _("One CPU and one GPU"),
        _("A has only GPU tasks, B has both. Task sizes vary a little."),
    ),
    "s3_tight_deadlines": (
        _("Tight deadlines, small buffer"),
        _("A’s tasks must start soon after they arrive."),
    ),
    "s3b_tight_deadlines_big_buffer": (
        _("Tight deadlines, large buffer"),
        _("The same tasks with a buffer of half a day. Work fetched early may finish late, and shares suffer."),
    ),
    "s4_shares_60_30_10": (
        _("Shares of 60, 30 and 10"),
        _("How close each project gets to its share."),
    ),
    "s5_sporadic_project": (
        _("A project that is often down"),
        _("B’s server is usually down: it is up three tenths of the time."),
    ),
    "s6_long_job_no_slack": (
        _("A 40-day task with no slack"),
        _("What B gets while A’s task must run, and what B gets afterwards."),
    ),
    "n10_projects": (
        _("Ten projects, eight CPUs"),
        _("How the projects take turns."),
    ),
    "n50_projects": (
        _("Fifty projects, eight CPUs"),
        _("Many small shares, and how long the smallest project waits."),
    ),
    "q060_min_jobs": (
        _("A queue of one-hour tasks"),
        _("A two-day buffer filled with tasks of one hour."),
    ),
    "q010_min_jobs": (
        _("A long queue of short tasks"),
        _("A two-day buffer filled with tasks of ten minutes."),
    ),
}


def texts_of(preset: Preset) -> tuple[str, str]:
    """Return the title of an example in the visitor's language, and its point, or the observation in a reported
    case.
    """
    title, shows = CASE_TEXTS[preset.case.issue] if preset.case else _TEXTS[preset.key]
    return str(title), str(shows)


def title_of(preset: Preset) -> str:
    """Return the title of an example in the visitor's language."""
    return texts_of(preset)[0]


def offered() -> Iterator[dict[str, Any]]:
    """Return all examples for the page: ``key``, ``title``, ``shows``, and the number of the BOINC issue (``issue``, or
    0).
    """
    for example in PRESETS:
        title, shows = texts_of(example)
        yield {"key": example.key, "title": title, "shows": shows, "issue": example.case.issue if example.case else 0}


def origin(text: str, computers: Mapping[int, str]) -> str:
    """Return the source of an experiment's scenario, ``kind:name`` as views store it, in words. ``computers``: the
    names of the visitor's own by number.
    """
    kind, _, name = text.partition(":")
    if kind == "example":
        try:
            return gettext("example “%(title)s”") % {"title": title_of(preset(name))}
        except KeyError:
            return text
    words = {
        "computer": gettext("a computer"),
        "form": gettext("a description"),
        "files": gettext("uploaded files"),
        "json": gettext("a JSON file"),
        "blank": gettext("the editor"),
        "api": gettext("a program"),
    }
    if kind == "computer" and name.isdigit() and int(name) in computers:
        return gettext("computer %(name)s") % {"name": computers[int(name)]}
    return words.get(kind, text)
