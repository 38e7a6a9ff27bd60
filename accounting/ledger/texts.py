"""The ledger's notes and the flags of days in words: what happened, what it means for the owner, what to do.

The kinds are those of accounting/engine/states.py; docs/explanation/accounting.md says when each is written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _

from accounting.engine.amounts import KINDS
from accounting.engine.states import DayFlag, NoteKind
from accounting.models import Note, Project
from portal.languages.sentences import unpacked
from portal.templatetags.display import count, credit_text, duration_text, speed


@dataclass(frozen=True, slots=True)
class NoteText:
    """``to_do`` is empty if no action is needed. ``is_loss``: reported work does not count."""

    happened: str
    meaning: str
    to_do: str
    is_loss: bool = False


@dataclass(frozen=True, slots=True)
class NoteLine:
    """A note with its sentences, as pages list it."""

    note: Note
    project: Project | None
    text: NoteText


_NOTHING_TO_DO: Final = ""

# %(project)s, %(amount)s and %(detail)s are filled in; an amount has its unit.
_TEXTS: Final[dict[str, NoteText]] = {
    NoteKind.INVALID: NoteText(
        _("The totals of %(project)s could not be read: %(detail)s."),
        _("Nothing is lost so far: the work counts as soon as a report can be read."),
        _("If this note appears again, update BOINC on this computer or reset the project there."),
        is_loss=True,
    ),
    NoteKind.BASELINE: NoteText(
        _("%(project)s reported earlier work: %(amount)s."),
        _(
            "It was done before this site attached the project, or by a client identified only by its "
            "computer’s name, so it "
            "does not count here. Work done from now on counts."
        ),
        _NOTHING_TO_DO,
    ),
    NoteKind.RESET: NoteText(
        _("The totals of %(project)s started from zero again."),
        _(
            "This happens when a project is reset, when BOINC is reinstalled, or when an old copy of its "
            "folder is restored. "
            "What was counted before is kept, and new work is added to it."
        ),
        _NOTHING_TO_DO,
    ),
    NoteKind.RETURNED: NoteText(
        _("Old totals of %(project)s came back."),
        _(
            "They were counted before, so only what goes beyond them counts. Work done after a reset looks the "
            "same if a lot "
            "of it arrives in one report because the computer could not reach this site for a long time."
        ),
        _("If this note appears again, two computers may be using copies of one BOINC folder. Give each its own."),
    ),
    NoteKind.EC_ABOVE_TIME: NoteText(
        _("%(project)s claimed %(amount)s more than its run time allows at the speed of this computer."),
        _("That part does not count; everything else does."),
        _("If this happens every day, measure the speed again: boinccmd --run_benchmarks."),
        is_loss=True,
    ),
    NoteKind.SEVERAL_GPUS: NoteText(
        _("%(project)s claimed %(amount)s more than the run time of this computer’s GPUs is worth."),
        _(
            "BOINC clients multiply the credit of a GPU by the number of GPUs, which is a known error of theirs. The "
            "work counts in full; only what was multiplied is left out."
        ),
        _NOTHING_TO_DO,
    ),
    NoteKind.SPEED_REPLACED: NoteText(
        _("The speed that the client reports for %(model)s cannot be right (%(reported)s). %(assumed)s count instead."),
        _("That is usual for this model, or 1 GFLOPS for processors of which nothing is known."),
        _("Update BOINC and the drivers of this computer’s GPUs, and measure its speed: boinccmd --run_benchmarks."),
    ),
    NoteKind.SUM_BROKEN: NoteText(
        _("The client’s sum of %(sum)s for %(project)s is not a number."),
        _(
            "Such a sum does not become right by itself, so what it adds up does not count. Everything else that the "
            "client reports counts as before."
        ),
        _(
            "Update BOINC and the drivers of this computer’s GPUs. Once the project’s tasks are finished, detach it "
            "and attach it again: the sum then starts again, and counts."
        ),
        is_loss=True,
    ),
    NoteKind.SUM_RESTARTED: NoteText(
        _("The client’s sum of %(sum)s for %(project)s is a number again."),
        _("It counts from this number on. What the client added up while its sum was not a number does not count."),
        _NOTHING_TO_DO,
    ),
    NoteKind.DROPPED: NoteText(
        _("This computer reported %(amount)s more than it could have done since its last reports."),
        _("Anything more than one day of work beyond what is possible does not count."),
        _(
            "Check that its processors and GPUs are described correctly on this page. If you copied the BOINC "
            "folder to "
            "another computer, attach that one again so that it gets its own identity."
        ),
        is_loss=True,
    ),
}
_UNKNOWN: Final = NoteText(_("Note: %(detail)s."), _("It is listed for completeness."), _NOTHING_TO_DO)

_AMOUNTS: Final = {
    "": _("%(amount)s credits"),
    "cpu_ec": _("%(amount)s credits for CPU work"),
    "gpu_ec": _("%(amount)s credits for GPU work"),
    "cpu_time": _("%(amount)s of CPU time"),
    "gpu_time": _("%(amount)s of GPU time"),
    "njobs_success": _("%(amount)s finished tasks"),
    "njobs_error": _("%(amount)s failed tasks"),
}


# The client's sums, by name
_SUMS: Final = {
    "cpu_ec": _("credit for CPU work"),
    "gpu_ec": _("credit for GPU work"),
    "cpu_time": _("CPU time"),
    "gpu_time": _("GPU time"),
    "njobs_success": _("finished tasks"),
    "njobs_error": _("failed tasks"),
}


# What the owner should know about a day (accounting rules).
_FLAG_WORDS: Final = {
    DayFlag.CAPPED: _("more was reported than the computer could have done; the rest is waiting, or was left out"),
    DayFlag.RESET: _("totals started from zero again"),
    DayFlag.RETURNED: _("old totals came back"),
    DayFlag.SPEED_UNKNOWN: _("speed not measured, so it was assumed"),
    DayFlag.BASELINE: _("earlier work was reported, which does not count here"),
    DayFlag.PENDING_PAID: _("waiting work was credited"),
    DayFlag.SEVERAL_GPUS: _("the client counted the credit of several GPUs too often; the surplus was left out"),
    DayFlag.SPEED_REPLACED: _("the reported speed could not be right, so the usual speed of the model was used"),
    DayFlag.SPANS_DAYS: _("several days together, of which this is the last: before the move nobody noted each day"),
    DayFlag.SUM_BROKEN: _("a sum that the client keeps is or was not a number"),
}


def flag_words(flags: int) -> list[str]:
    """Return what the owner should know about a day with these flags, in words."""
    return [gettext(words) for flag, words in _FLAG_WORDS.items() if flags & flag]


def explain(note: Note, project_name: str = "") -> NoteText:
    """Return the note in sentences; ``project_name`` is the note's project's, if it is about one."""
    text = _TEXTS.get(note.kind, _UNKNOWN)
    happened = gettext(text.happened) % {
        "project": project_name or gettext("A project"),
        "amount": _amount(note),
        "detail": unpacked(note.detail) or note.kind,
        **(_replaced_speed(note.detail) if note.kind == NoteKind.SPEED_REPLACED else {}),
        "sum": gettext(_SUMS[note.detail]) if note.detail in _SUMS else "",
    }
    to_do = gettext(text.to_do) if text.to_do else ""
    return NoteText(happened, gettext(text.meaning), to_do, text.is_loss)


def _replaced_speed(detail: str) -> dict[str, str]:
    """Parse what ``accounting.engine.ledger`` notes about a speed that is not believed."""
    _processor, reported, assumed, model = detail.split("|", 3) if "|" in detail else ("", "0", "0", "")
    return {
        "model": model or gettext("its processors"),
        "reported": speed(int(reported)) if int(reported) else gettext("none was measured"),
        "assumed": speed(int(assumed)),
    }


def _amount(note: Note) -> str:
    """Return the note's amount with its unit; one without a kind of amount is credit."""
    amount = int(note.amount)
    kind = note.detail if note.detail in KINDS else ""
    write = count if kind.startswith("njobs") else duration_text if kind.endswith("_time") else credit_text
    return gettext(_AMOUNTS[kind]) % {"amount": write(amount)}
