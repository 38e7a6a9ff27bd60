"""The questions to scripts and their answers: lines of JSON, or words and exit codes like those of BOINC's scripts.
Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from credit.engine.rules import MAX_CREDIT

MAX_LINE_NBYTES: Final = 60_000
"""The length of a question, and of an answer."""
MAX_REASON_CHARS: Final = 200
TRANSIENT_CODE: Final = 3
"""The exit code of BOINC's scripts for a temporary failure (VAL_RESULT_TRANSIENT_ERROR)."""
FIRST_CODE_OF_FAILURE: Final = 126
"""Shells and the sandbox end with these if a program cannot be run, or was killed by a signal."""
_TRACEBACK: Final = b"Traceback (most recent call last)"

WORDS: Final[Mapping[str, frozenset[str]]] = {
    "check": frozenset({"files", "result_id", "runtime"}),
    "compare": frozenset({"files", "result_id", "runtime", "files2", "result_id2", "runtime2"}),
    "assimilate": frozenset({"files", "files2", "wu_id", "wu_name", "result_id", "runtime", "batch_id"}),
}
DEFAULT_WORDS: Final[Mapping[str, str]] = {"check": "files", "compare": "files files2", "assimilate": "wu_id files"}


class ScriptFailure(Exception):
    """The script failed; the results are not at fault. ``str`` describes the failure, for operators."""


class TryLater(Exception):
    """The script wants to be asked again later. ``str``: its reason."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer. ``credit`` and ``is_outlier`` of a check; ``keeps`` of an assimilator."""

    is_yes: bool
    credit: float | None = None
    is_outlier: bool = False
    keeps: bool = False


_FIELDS: Final[Mapping[str, frozenset[str]]] = {
    "check": frozenset({"answer", "credit", "outlier", "later"}),
    "compare": frozenset({"answer", "later"}),
    "assimilate": frozenset({"answer", "keep", "later"}),
}


def question(ask: str, **facts: Any) -> bytes:
    """Return a line for the script. Raises ScriptFailure if it is too long."""
    line = json.dumps({"ask": ask, **facts}, separators=(",", ":")).encode() + b"\n"
    if len(line) > MAX_LINE_NBYTES:
        raise ScriptFailure(f"the question has {len(line)} bytes, more than {MAX_LINE_NBYTES}")
    return line


def read_answer(ask: str, line: bytes) -> Reply:
    """Parse the answer to such a question. Raises TryLater, and ScriptFailure if the line is no answer."""
    try:
        answer = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ScriptFailure(f"it wrote {_shown(line)}, which is not a line of JSON") from error
    if not isinstance(answer, dict):
        raise ScriptFailure(f"it wrote {_shown(line)}, which is not a JSON object")
    if unknown := sorted(set(answer) - _FIELDS[ask]):
        raise ScriptFailure(f"its answer has {unknown[0][:40]!r}: known are {', '.join(sorted(_FIELDS[ask]))}")
    if "later" in answer:
        raise TryLater(_storable(str(answer["later"]))[:MAX_REASON_CHARS])
    for name in ("answer", "outlier", "keep"):
        if not isinstance(answer.get(name, name != "answer" and None), bool | None) or answer.get(name, 0) is None:
            raise ScriptFailure(f"{name!r} of its answer is not true or false")
    if "answer" not in answer:
        raise ScriptFailure("its answer has no 'answer'")
    return Reply(
        answer["answer"], _credit(answer.get("credit")), answer.get("outlier", False), answer.get("keep", False)
    )


def _credit(credit: Any) -> float | None:
    if credit is None:
        return None
    if isinstance(credit, bool) or not isinstance(credit, int | float) or not 0 <= credit <= MAX_CREDIT:
        raise ScriptFailure(f"'credit' of its answer is not a number from 0 to {MAX_CREDIT:g}")
    return float(credit)


def read_exit(code: int, errors: bytes) -> Reply:
    """Interpret an exit code: 0 yes, 3 later, others no; codes for "cannot be run" raise ScriptFailure."""
    if code == TRANSIENT_CODE:
        raise TryLater(f"exit code {code}")
    if code < 0 or code >= FIRST_CODE_OF_FAILURE or (code and _TRACEBACK in errors):
        raise ScriptFailure(f"exit code {code}{_said(errors)}")
    return Reply(code == 0)


def words_of(ask: str, text: str) -> list[str]:
    """Parse a script's placeholders. Raises ValueError for an unknown one."""
    words = (text or DEFAULT_WORDS[ask]).split()
    if unknown := [word for word in words if word not in WORDS[ask]]:
        raise ValueError(f"{unknown[0][:40]}: {', '.join(sorted(WORDS[ask]))}")
    return words


def arguments(words: Sequence[str], values: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the command line for these words: for files, one argument per path."""
    return [argument for word in words for argument in values[word]]


def _said(errors: bytes) -> str:
    last = _storable(errors.decode(errors="replace")).strip()[-MAX_REASON_CHARS:]
    return f", and wrote: {last}" if last else ""


def failure_text(what: str, errors: bytes) -> str:
    """Describe a failure with the end of the script's error output."""
    return what + _said(errors)


def _storable(text: str) -> str:
    """Remove characters that a database column or the log cannot hold."""
    return text.encode(errors="replace").decode().replace("\0", "")


def _shown(line: bytes) -> str:
    return repr(line[:80].decode(errors="replace"))
