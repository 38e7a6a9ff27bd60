"""A result's state in words: a short badge, a sentence, and what an exit status means. Pure."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Final, Protocol


class Stated(Protocol):
    """What a state is read from: the numbers of ``credit.models``, which are BOINC's."""

    server_state: int
    outcome: int
    validate_state: int
    exit_status: int | None
    deadline_at: dt.datetime | None


@dataclass(frozen=True, slots=True)
class StateText:
    """``kind`` is that of the badge: "ok", "warn", "error" or "" (neutral)."""

    word: str
    kind: str
    sentence: str


_UNSENT = StateText("waits to be sent", "", "It will go to the next computer that asks for such work.")
_IN_PROGRESS = StateText("in progress", "", "The computer has not reported it yet.")
_LATE = StateText("overdue", "warn", "The deadline has passed; it still counts if it is reported soon.")
_OUTCOMES: Final = {
    2: StateText("could not be sent", "error", "No computer could take it."),
    3: StateText("error", "error", "The computer reported an error."),
    4: StateText("no reply", "warn", "Nothing was reported before the deadline, so it was given to another computer."),
    5: StateText("not needed", "", "It was not needed any more before it was sent."),
    6: StateText("not checkable", "error", "Its output files could not be read or compared."),
    7: StateText("abandoned", "warn", "The computer was detached, or lost the job."),
}
_PENDING = StateText("pending", "", "It waits to be checked.")
_VALIDATIONS: Final = {
    0: _PENDING,
    1: StateText("valid", "ok", "Its output is right, and credit was granted."),
    2: StateText("invalid", "error", "Its output differs from what other computers found, so it gets no credit."),
    3: StateText("not checked", "", "It ended without having to be checked."),
    4: StateText("pending", "", "Its output differs from that of another computer: one more computer decides."),
    5: StateText("too late", "warn", "It came when the job was over and its files were gone, so it gets no credit."),
}

_EXITS: Final = {
    -226: "the program ended too often without saying that it had finished",
    -225: "a file name was not acceptable",
    -224: "a file could not be found on the server",
    -221: "a file did not have its announced size",
    -186: "an input file could not be downloaded",
    -177: "it used more of something than it may",
    -163: "a file was missing",
    -131: "an output file was larger than it may be",
    -128: "an output file was refused by the server",
    -123: "a program file had no signature",
    -120: "the signature of a program file was wrong",
    -119: "a file differed from its checksum",
    -112: "a description could not be read",
    192: "an error of the client",
    194: "the client ended it",
    195: "a program that it needs failed",
    196: "it used more disk space than it may",
    197: "it ran longer than it may",
    198: "it used more memory than it may",
    199: "the network access that it needs is not there",
    200: "it was not started before its deadline",
    201: "the GPU that it needs is missing",
    202: "the project cancelled it",
    203: "it was aborted by hand",
}


def state_text(result: Stated, now: dt.datetime) -> StateText:
    """The state of a result at ``now``."""
    if result.server_state == 2:
        return _UNSENT
    if result.server_state == 4:
        return _LATE if result.deadline_at is not None and result.deadline_at < now else _IN_PROGRESS
    if result.outcome == 1:
        return _VALIDATIONS.get(result.validate_state, _PENDING)
    if result.outcome == 3 and result.exit_status in (202, 203):
        return StateText("aborted", "warn", f"It ended before its time: {exit_text(result.exit_status)}.")
    return _OUTCOMES.get(result.outcome, _PENDING)


def exit_text(status: int | None) -> str:
    """What an exit status means, in words; empty for 0 and for none."""
    if not status:
        return ""
    if status in _EXITS:
        return _EXITS[status]
    if status < 0:
        return f"the client's error {status}"
    if status < 128:
        return f"the program ended with its own code {status}"
    if status < 192:
        return f"the program was ended by signal {status - 128}"
    return f"exit status {status}"
