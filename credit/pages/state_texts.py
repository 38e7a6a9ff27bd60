"""The words for a result's state: a short badge, a sentence, and the meaning of an exit status."""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from credit.engine.states import Outcome, ServerState, ValidateState

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


class StateNumbers(Protocol):
    """The numbers that make up a state, of ``credit.engine.states``; they are BOINC's."""

    server_state: int
    outcome: int
    validate_state: int
    exit_status: int | None
    deadline_at: dt.datetime | None


class ReportedFailure(Protocol):
    """The data that explain a failure. ``stderr_text`` begins with the client's message, if there is one."""

    client_state: int | None
    exit_status: int | None
    stderr_text: str


@dataclass(frozen=True, slots=True)
class StateText:
    """The words for a state.

    ``kind`` is the badge's: "ok", "warn", "error" or "" (neutral). ``code`` is language-independent.
    """

    code: str
    word: StrOrPromise
    kind: str
    sentence: StrOrPromise

    @property
    def is_open(self) -> bool:
        """Whether it may still be validated."""
        return self.code in ("in_progress", "overdue", "pending")


_UNSENT = StateText(
    "unsent", _("waiting to be sent"), "", _("It will go to the next computer that asks for such work.")
)
_IN_PROGRESS = StateText("in_progress", _("in progress"), "", _("The computer has not reported it yet."))
_LATE = StateText(
    "overdue", _("overdue"), "warn", _("The deadline has passed. The task still counts if it is reported soon.")
)
_OUTCOMES: Final[dict[int, StateText]] = {
    Outcome.COULD_NOT_SEND: StateText(
        "not_sent", _("could not be sent"), "error", _("No computer was able to take this task.")
    ),
    Outcome.CLIENT_ERROR: StateText("error", _("error"), "error", _("The computer reported an error.")),
    Outcome.NO_REPLY: StateText(
        "no_reply",
        _("no reply"),
        "warn",
        _("Nothing was reported before the deadline, so the work was given to another computer."),
    ),
    Outcome.DIDNT_NEED: StateText(
        "not_needed", _("not needed"), "", _("The task was no longer needed when it was about to be sent.")
    ),
    Outcome.VALIDATE_ERROR: StateText(
        "not_checkable", _("not checkable"), "error", _("The output files could not be read or compared.")
    ),
    Outcome.CLIENT_DETACHED: StateText(
        "abandoned", _("abandoned"), "warn", _("The computer was detached from the project, or lost the task.")
    ),
}
_PENDING = StateText("pending", _("pending"), "", _("The task is waiting to be validated."))
_VALIDATIONS: Final[dict[int, StateText]] = {
    ValidateState.INIT: _PENDING,
    ValidateState.VALID: StateText("valid", _("valid"), "ok", _("Validated, and credit was granted.")),
    ValidateState.INVALID: StateText(
        "invalid",
        _("invalid"),
        "error",
        _("The output differs from what other computers found, so it earns no credit."),
    ),
    ValidateState.NO_CHECK: StateText(
        "not_checked", _("not checked"), "", _("The task ended without needing validation.")
    ),
    ValidateState.INCONCLUSIVE: StateText(
        "pending",
        _("pending"),
        "",
        _("The output differs from that of another computer. One more computer will decide."),
    ),
    ValidateState.TOO_LATE: StateText(
        "too_late",
        _("too late"),
        "warn",
        _("The task was reported after the work was finished and its files were deleted, so it earns no credit."),
    ),
}

_EXITS: Final = {
    -244: _("the client could not map a file into memory"),
    -240: _("the client could not inspect a file"),
    -239: _("a file could not be made executable"),
    -232: _("the client was shut down and stopped the task"),
    -231: _("a signature could not be computed or checked"),
    -226: _("the program exited too often without finishing"),
    -225: _("a file name was not allowed"),
    -224: _("a file could not be found on the server"),
    -221: _("a file did not have the expected size"),
    -200: _("something had the wrong size"),
    -198: _("the computer lacks the necessary resources"),
    -197: _("the task was aborted by the user"),
    -192: _("a folder could not be created"),
    -187: _("an output file could not be uploaded"),
    -186: _("a required file could not be downloaded or was damaged"),
    -185: _("the program could not be started"),
    -184: _("the server sent an invalid reply"),
    -177: _("the task exceeded a resource limit"),
    -163: _("a file was missing"),
    -161: _("the client did not find something in its records"),
    -148: _("the program could not be executed"),
    -147: _("no process could be started for the program"),
    -131: _("an output file was too large"),
    -128: _("an output file was refused by the server"),
    -127: _("an output file could not be uploaded for the moment"),
    -123: _("a program file had no signature"),
    -120: _("the signature of a program file was wrong"),
    -119: _("a file did not match its checksum"),
    -115: _("the client gave up uploading a file"),
    -114: _("the client gave up downloading a file"),
    -112: _("a description could not be read"),
    -110: _("a file could not be deleted"),
    -109: _("a file could not be renamed"),
    -108: _("a file could not be opened"),
    -107: _("the client could not connect to the server"),
    -106: _("a file could not be read or written"),
    -105: _("a file could not be written"),
    -104: _("a file could not be read"),
    -103: _("a file could not be written"),
    -102: _("a file could not be read"),
    -101: _("the client ran out of memory"),
    192: _("the client could not write its state file"),
    193: _("the program crashed: a signal ended it"),
    194: _("the client stopped the task"),
    195: _("a program started by the task failed"),
    196: _("the task exceeded its disk space limit"),
    197: _("the task exceeded its time limit"),
    198: _("the task exceeded its memory limit"),
    199: _("the client was shut down and stopped the task"),
    200: _("the task was not started before its deadline"),
    201: _("the required GPU is missing"),
    202: _("the project cancelled the task"),
    203: _("the task was aborted by the user"),
    204: _("the task ended for a reason unknown to the client"),
    205: _("the program ran out of memory"),
    206: _("the program could not be initialised"),
    207: _("no sub-task was found to run"),
    208: _("a sub-task failed"),
    209: _("the task was still running long after its deadline"),
}
"""Codes that the client reports instead of the program's own. Source: BOINC's lib/error_numbers.h."""

_WINDOWS: Final = {
    0x40010004: _("it was terminated from outside"),
    0x80000003: _("it reached a breakpoint"),
    0xC0000005: _("it accessed memory that it does not own"),
    0xC000001D: _("the processor does not support one of its instructions"),
    0xC0000094: _("it divided by zero"),
    0xC00000FD: _("its stack overflowed"),
    0xC0000135: _("a required library is missing"),
    0xC000013A: _("it was terminated from outside"),
    0xC0000142: _("a required library could not be initialised"),
    0xC0000374: _("its memory was corrupted"),
    0xC0000409: _("its stack was corrupted, or it aborted"),
    0xE06D7363: _("one of its own errors was not handled"),
}
"""Exit codes of Windows, unsigned; the last is Visual C++'s.

Source: Microsoft, Open Specifications, MS-ERREF, section 2.3.1, NTSTATUS values.
"""

_NO_CRASH: Final = frozenset({0xC0000135, 0xC000013A, 0xC0000142})

_DOWNLOADING: Final = 1  # The state that clients report for a result whose files are still downloading
_DOWNLOAD_FAILED: Final = -186
MAX_MESSAGE: Final = 4096
"""Characters searched for the client's message, which comes first: the program may write anything after it."""
_FILE_ERROR: Final = re.compile(r"<error_code>(-[0-9]{1,4})\b")
_SIGNALLED: Final = re.compile(r"process got signal ([0-9]{1,3})\b")


def state_text(result: StateNumbers, now: dt.datetime) -> StateText:
    """Return the state of a result at ``now``."""
    if result.server_state == ServerState.UNSENT:
        return _UNSENT
    if result.server_state == ServerState.IN_PROGRESS:
        return _LATE if result.deadline_at is not None and result.deadline_at < now else _IN_PROGRESS
    if result.outcome == Outcome.SUCCESS:
        return _VALIDATIONS.get(result.validate_state, _PENDING)
    if result.outcome == Outcome.CLIENT_ERROR and result.exit_status in (202, 203):
        return StateText(
            "aborted",
            _("aborted"),
            "warn",
            gettext("The task ended early: %(reason)s.") % {"reason": exit_text(result.exit_status)},
        )
    return _OUTCOMES.get(result.outcome, _PENDING)


def reason_text(result: ReportedFailure) -> str:
    """Explain in words why it failed: its exit status, and any details from the client's message; empty if it did not.

    If a file could not be downloaded, the exit status only says so, and the message has the file's error. Exit statuses
    of signals and of programs are both small numbers; only the message distinguishes them.
    """
    status, message = result.exit_status, result.stderr_text[:MAX_MESSAGE]
    status_text = exit_text(status)
    if result.client_state == _DOWNLOADING or status == _DOWNLOAD_FAILED:
        file_error = _FILE_ERROR.search(message)
        detail = exit_text(int(file_error[1])) if file_error else ""
        return ": ".join(text for text in (status_text, detail) if text)
    signal = _SIGNALLED.match(message)
    # The wait status of Unix: the number, plus 128 if memory was dumped.
    if signal and status in (int(signal[1]), int(signal[1]) + 128):
        return _signal_text(int(signal[1]))
    return status_text


def exit_text(status: int | None) -> str:
    """Explain an exit status in words; empty for 0 and None. Windows codes may be signed or unsigned."""
    if not status:
        return ""
    if status in _EXITS:
        return str(_EXITS[status])
    unsigned = status & 0xFFFFFFFF
    if 0x40000000 <= unsigned < 0xFFFF0000:
        return _windows_text(unsigned)
    if -1000 < status < 0:
        return gettext("client error %(status)s") % {"status": status}
    if 128 < status < 192:
        return _signal_text(status - 128)
    return gettext("the program ended with exit code %(status)s") % {"status": status}


def _signal_text(number: int) -> str:
    return gettext("the program was terminated by signal %(number)s") % {"number": number}


def _windows_text(code: int) -> str:
    """Describe a Windows code.

    Errors of the system (from 0xC0000000) or a program (to 0xEFFFFFFF), and breakpoints, are crashes.
    """
    is_exception = 0xC0000000 <= code < 0xF0000000 or code == 0x80000003
    is_crash = is_exception and code not in _NO_CRASH
    facts = {"code": f"0x{code:08X}", "reason": _WINDOWS.get(code, "")}
    if code in _WINDOWS:
        text = (
            gettext("the program crashed (Windows code %(code)s: %(reason)s)")
            if is_crash
            else gettext("the program ended (Windows code %(code)s: %(reason)s)")
        )
    elif is_crash:
        text = gettext("the program crashed (Windows code %(code)s)")
    else:
        text = gettext("the program ended (Windows code %(code)s)")
    return text % facts
