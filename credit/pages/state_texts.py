"""A result's state in words: a short badge, a sentence, and what an exit status means. Pure."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from typing import Final, Protocol

from credit.engine.states import Outcome, ServerState, ValidateState


class Stated(Protocol):
    """The numbers that make up a state, of ``credit.engine.states``, which are BOINC's."""

    server_state: int
    outcome: int
    validate_state: int
    exit_status: int | None
    deadline_at: dt.datetime | None


class Reported(Protocol):
    """The data that explain a failure: ``stderr_text`` begins with the client's message, if it has one."""

    client_state: int | None
    exit_status: int | None
    stderr_text: str


@dataclass(frozen=True, slots=True)
class StateText:
    """``kind`` is that of the badge: "ok", "warn", "error" or "" (neutral)."""

    word: str
    kind: str
    sentence: str


_UNSENT = StateText("waits to be sent", "", "It will go to the next computer that asks for such work.")
_IN_PROGRESS = StateText("in progress", "", "The computer has not reported it yet.")
_LATE = StateText("overdue", "warn", "The deadline has passed; it still counts if it is reported soon.")
_OUTCOMES: Final[dict[int, StateText]] = {
    Outcome.COULD_NOT_SEND: StateText("could not be sent", "error", "No computer could take it."),
    Outcome.CLIENT_ERROR: StateText("error", "error", "The computer reported an error."),
    Outcome.NO_REPLY: StateText(
        "no reply", "warn", "Nothing was reported before the deadline, so it was given to another computer."
    ),
    Outcome.DIDNT_NEED: StateText("not needed", "", "It was no longer needed when it was about to be sent."),
    Outcome.VALIDATE_ERROR: StateText("not checkable", "error", "Its output files could not be read or compared."),
    Outcome.CLIENT_DETACHED: StateText("abandoned", "warn", "The computer was detached, or lost the job."),
}
_PENDING = StateText("pending", "", "It waits to be checked.")
_VALIDATIONS: Final[dict[int, StateText]] = {
    ValidateState.INIT: _PENDING,
    ValidateState.VALID: StateText("valid", "ok", "Validated, and credit was granted."),
    ValidateState.INVALID: StateText(
        "invalid", "error", "Its output differs from what other computers found, so it gets no credit."
    ),
    ValidateState.NO_CHECK: StateText("not checked", "", "It ended without having to be checked."),
    ValidateState.INCONCLUSIVE: StateText(
        "pending", "", "Its output differs from that of another computer: one more computer decides."
    ),
    ValidateState.TOO_LATE: StateText(
        "too late", "warn", "It came when the job was over and its files were gone, so it gets no credit."
    ),
}

_EXITS: Final = {
    -244: "the client could not map a file into memory",
    -240: "the client could not look at a file",
    -239: "a file could not be made executable",
    -232: "the client was shut down, and ended it",
    -231: "a signature could not be computed or checked",
    -226: "the program ended too often without saying that it had finished",
    -225: "a file name was not acceptable",
    -224: "a file could not be found on the server",
    -221: "a file did not have its announced size",
    -200: "something did not have the size that it should have",
    -198: "the computer has too few of the needed resources",
    -197: "it was aborted by hand",
    -192: "a folder could not be made",
    -187: "an output file could not be uploaded",
    -186: "a file that it needs could not be downloaded, or did not pass its check",
    -185: "the program could not be started",
    -184: "the server did not answer as it should",
    -177: "it used more of something than it may",
    -163: "a file was missing",
    -161: "the client missed something in its own records",
    -148: "the program could not be executed",
    -147: "no process could be started for the program",
    -131: "an output file was larger than it may be",
    -128: "an output file was refused by the server",
    -127: "an output file could not be uploaded for now",
    -123: "a program file had no signature",
    -120: "the signature of a program file was wrong",
    -119: "a file differed from its checksum",
    -115: "the client gave up uploading a file",
    -114: "the client gave up downloading a file",
    -112: "a description could not be read",
    -110: "a file could not be deleted",
    -109: "a file could not be renamed",
    -108: "a file could not be opened",
    -107: "no connection to the server was made",
    -106: "a file could not be read or written",
    -105: "a file could not be written",
    -104: "a file could not be read",
    -103: "a file could not be written",
    -102: "a file could not be read",
    -101: "the client ran out of memory",
    192: "the client could not write its state file",
    193: "the program crashed: a signal ended it",
    194: "the client ended it",
    195: "a program that it started failed",
    196: "it used more disk space than it may",
    197: "it ran longer than it may",
    198: "it used more memory than it may",
    199: "the client was shut down, and ended it",
    200: "it was not started before its deadline",
    201: "the GPU that it needs is missing",
    202: "the project cancelled it",
    203: "it was aborted by hand",
    204: "it ended for a reason that the client does not know",
    205: "it ran out of memory",
    206: "the program could not set itself up",
    207: "it found no sub-task to compute",
    208: "one of its sub-tasks failed",
    209: "it still ran too long after its deadline",
}
"""Codes that the client reports instead of the program's own. Source: BOINC's lib/error_numbers.h."""

_WINDOWS: Final = {
    0x40010004: "it was ended from outside",
    0x80000003: "it reached a breakpoint",
    0xC0000005: "it used memory that is not its own",
    0xC000001D: "the processor does not know an instruction of it",
    0xC0000094: "it divided by zero",
    0xC00000FD: "its stack overflowed",
    0xC0000135: "a library that it needs is missing",
    0xC000013A: "it was ended from outside",
    0xC0000142: "a library that it needs could not be set up",
    0xC0000374: "it damaged its memory",
    0xC0000409: "it damaged its stack, or gave up",
    0xE06D7363: "it did not catch one of its own errors",
}
"""Exit codes of Windows, unsigned; the last is Visual C++'s.

Source: Microsoft, Open Specifications, MS-ERREF, section 2.3.1, NTSTATUS values.
"""

_NO_CRASH: Final = frozenset({0xC0000135, 0xC000013A, 0xC0000142})

_DOWNLOADING: Final = 1  # the client's state of a result whose files are on their way
_DOWNLOAD_FAILED: Final = -186
_MAX_MESSAGE: Final = 4096
"""Characters searched for the client's message, with which the text begins: the program may write anything after it."""
_FILE_ERROR: Final = re.compile(r"<error_code>(-[0-9]{1,4})\b")
_SIGNALLED: Final = re.compile(r"process got signal ([0-9]{1,3})\b")


def state_text(result: Stated, now: dt.datetime) -> StateText:
    """The state of a result at ``now``."""
    if result.server_state == ServerState.UNSENT:
        return _UNSENT
    if result.server_state == ServerState.IN_PROGRESS:
        return _LATE if result.deadline_at is not None and result.deadline_at < now else _IN_PROGRESS
    if result.outcome == Outcome.SUCCESS:
        return _VALIDATIONS.get(result.validate_state, _PENDING)
    if result.outcome == Outcome.CLIENT_ERROR and result.exit_status in (202, 203):
        return StateText("aborted", "warn", f"It ended before its time: {exit_text(result.exit_status)}.")
    return _OUTCOMES.get(result.outcome, _PENDING)


def reason_text(result: Reported) -> str:
    """Why it failed, in words: its exit status, and any details from the client's message; empty if it did not.

    A file that could not be had has an exit status that says no more, and the message the error of the file. A signal
    has its number as the exit status, as a program's own code has, and only the message tells them apart.
    """
    status, message = result.exit_status, result.stderr_text[:_MAX_MESSAGE]
    said = exit_text(status)
    if result.client_state == _DOWNLOADING or status == _DOWNLOAD_FAILED:
        found = _FILE_ERROR.search(message)
        detail = exit_text(int(found[1])) if found else ""
        return ": ".join(text for text in (said, detail) if text)
    signal = _SIGNALLED.match(message)
    # The wait status of Unix: the number, and 128 more if memory was dumped.
    if signal and status in (int(signal[1]), int(signal[1]) + 128):
        return _signal_text(int(signal[1]))
    return said


def exit_text(status: int | None) -> str:
    """The meaning of an exit status, in words; empty for 0 and None. Windows codes may be signed or unsigned."""
    if not status:
        return ""
    if status in _EXITS:
        return _EXITS[status]
    unsigned = status & 0xFFFFFFFF
    if 0x40000000 <= unsigned < 0xFFFF0000:
        return _windows_text(unsigned)
    if -1000 < status < 0:
        return f"the client's error {status}"
    if 128 < status < 192:
        return _signal_text(status - 128)
    return f"the program ended with its own code {status}"


def _signal_text(number: int) -> str:
    return f"the program was ended by signal {number}"


def _windows_text(code: int) -> str:
    """Exceptions are errors of the system (from 0xC0000000) or of a program (to 0xEFFFFFFF), and breakpoints."""
    is_exception = 0xC0000000 <= code < 0xF0000000 or code == 0x80000003
    verb = "crashed" if is_exception and code not in _NO_CRASH else "ended"
    known = f": {_WINDOWS[code]}" if code in _WINDOWS else ""
    return f"the program {verb} (Windows code 0x{code:08X}{known})"
