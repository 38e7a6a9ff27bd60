"""The ledger's notes and the flags of days in words: what happened, what it means for the owner, what to do.

The kinds are those of accounting/engine/states.py; docs/explanation/accounting.md says when each is written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from accounting.engine.amounts import KINDS
from accounting.engine.states import DayFlag, NoteKind
from accounting.models import Note, Project
from portal.templatetags.display import count, credit_text, duration_text


@dataclass(frozen=True, slots=True)
class NoteText:
    """``to_do`` is empty if there is nothing to do. ``is_loss``: something reported does not count."""

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

# {project}, {amount} and {detail} are filled in; an amount has its unit.
_TEXTS: Final[dict[str, NoteText]] = {
    NoteKind.INVALID: NoteText(
        "The totals of {project} could not be read: {detail}.",
        "Nothing is lost so far: the work counts as soon as a report can be read.",
        "If this note comes back, update BOINC on this computer, or reset the project there.",
        is_loss=True,
    ),
    NoteKind.BASELINE: NoteText(
        "{project} came with earlier work: {amount}.",
        "It was done before this site had attached the project, or by a client that was known by its computer's name "
        "alone. So it does not count here. What the computer does from now on does.",
        _NOTHING_TO_DO,
    ),
    NoteKind.RESET: NoteText(
        "The totals of {project} began anew.",
        "That happens when a project is reset, when BOINC is installed again, or when an old copy of its folder is "
        "put back. What was counted before stays; new work counts on top.",
        _NOTHING_TO_DO,
    ),
    NoteKind.RETURNED: NoteText(
        "Old totals of {project} came back.",
        "They were counted before, so only what goes beyond them counts. Work after a reset looks the same if much of "
        "it comes in one report, because the computer could not reach this site for long.",
        "If this note comes back, two computers may use copies of one BOINC folder. Give each its own.",
    ),
    NoteKind.EC_ABOVE_TIME: NoteText(
        "{project} claimed {amount} more than its run time allows at the speed of this computer.",
        "That part does not count, all the rest does. Clients with several GPUs are known to claim too much.",
        "If it comes every day, measure the speed again: boinccmd --run_benchmarks.",
        is_loss=True,
    ),
    NoteKind.DROPPED: NoteText(
        "This computer reported {amount} more than it can have done since its last reports.",
        "What exceeds the possible by more than a day of work does not count.",
        "Look whether its processors and GPUs are described rightly on this page. If you copied BOINC's folder to "
        "another computer, attach that one again so that it gets a separate identity.",
        is_loss=True,
    ),
}
_UNKNOWN: Final = NoteText("Something was noted: {detail}.", "It is here for completeness.", _NOTHING_TO_DO)

_UNITS: Final = {
    "cpu_ec": "credits of processor work",
    "gpu_ec": "credits of GPU work",
    "cpu_time": "of processor time",
    "gpu_time": "of GPU time",
    "njobs_success": "finished jobs",
    "njobs_error": "failed jobs",
}


# What the owner should know of a day (accounting rules).
_FLAG_WORDS: Final = {
    DayFlag.CAPPED: "more was reported than the computer can do; the rest waits",
    DayFlag.RESET: "totals began anew",
    DayFlag.RETURNED: "old totals came back",
    DayFlag.SPEED_UNKNOWN: "speed not measured, so estimated",
    DayFlag.BASELINE: "attached with earlier work, which does not count here",
    DayFlag.PENDING_PAID: "earlier work was credited",
}


def flag_words(flags: int) -> list[str]:
    """In words, what the owner should know of a day with these flags."""
    return [words for flag, words in _FLAG_WORDS.items() if flags & flag]


def explain(note: Note, project_name: str = "") -> NoteText:
    """The note in sentences; ``project_name`` is the note's project's, if it is about one."""
    text = _TEXTS.get(note.kind, _UNKNOWN)
    said = text.happened.format(
        project=project_name or "A project", amount=_amount(note), detail=note.detail or note.kind
    )
    return NoteText(said, text.meaning, text.to_do, text.is_loss)


def _amount(note: Note) -> str:
    """The note's amount with its unit; one without a kind of amount is credit."""
    amount = int(note.amount)
    kind = note.detail if note.detail in KINDS else "cpu_ec"
    unit = _UNITS[kind] if note.detail in KINDS else "credits"
    if kind.startswith("njobs"):
        return f"{count(amount)} {unit}"
    if kind.endswith("_time"):
        return f"{duration_text(amount)} {unit}"
    return f"{credit_text(amount)} {unit}"
