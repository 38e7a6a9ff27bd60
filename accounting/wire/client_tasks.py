"""Parse the tasks in an account-manager request (<results>) into dataclasses. Pure.

Clients send them if the last reply asked for them (BOINC protocol, AM RPC request). Nothing in them can fail the
request: invalid parts are left out and counted, or become None.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from accounting.engine.client_tasks import TaskState, task_state
from portal.wire.scanner import clip, flag, float_or_none

MAX_TASKS: Final = 200
"""Tasks stored per request; the others are counted."""
MAX_NBYTES: Final = 1 << 19
"""Bytes of the list that are parsed: a client prints about 1,500 for a task."""
MAX_URL: Final = 255
_MAX_SECS: Final = 1e11

# Neither white space nor characters that need quoting anywhere a name goes; a comma separates names in questions.
_NAME: Final = re.compile(rb"[!#$%()*+\-./0-9:;=?@A-Z\[\]^_a-z{|}~]{1,255}")
_MAX_TEXT: Final = 600
_DIGIT: Final = re.compile(rb"\s{0,9}([0-9]{1,2})\s{0,9}")


@dataclass(frozen=True, slots=True)
class ReportedTask:
    """A task as its client reports it. Times in seconds (the deadline: Unix time); None: missing, or not a sane
    number.
    """

    url: str
    name: str
    state: TaskState
    fraction_done: float | None = None
    deadline: float | None = None
    elapsed_secs: float | None = None
    remaining_secs: float | None = None


@dataclass(frozen=True, slots=True)
class ReportedTasks:
    """``left_out``: tasks beyond the limits, without a usable name, or named twice at one project."""

    tasks: tuple[ReportedTask, ...] = ()
    left_out: int = 0


def parse_tasks(section: bytes) -> ReportedTasks:
    """Parse the tasks between <results> and </results>. Of two with one name and project the first counts."""
    is_cut = len(section) > MAX_NBYTES
    parts = section[:MAX_NBYTES].split(b"<result>")[1:]
    left_out = section.count(b"<result>") - len(parts) + (1 if is_cut and parts else 0)
    if is_cut:
        parts = parts[:-1]
    tasks: dict[tuple[str, str], ReportedTask] = {}
    for part in parts:
        task = _task(part) if len(tasks) < MAX_TASKS else None
        if task is None or (task.url, task.name) in tasks:
            left_out += 1
        else:
            tasks[task.url, task.name] = task
    return ReportedTasks(tuple(tasks.values()), left_out)


def _task(part: bytes) -> ReportedTask | None:
    name, url = (_text(part, b"name") or b"").strip(), (_text(part, b"project_url") or b"").strip()
    if not _NAME.fullmatch(name) or not url or len(url) > MAX_URL:
        return None
    state = task_state(
        _digit(_text(part, b"state")) or 0,
        _digit(_text(part, b"active_task_state")),
        _digit(_text(part, b"scheduler_state")),
        is_suspended=_is_set(part, b"suspended_via_gui") or _is_set(part, b"project_suspended_via_gui"),
    )
    if state not in (TaskState.FAILED, TaskState.ABORTED) and _is_set(part, b"ready_to_report"):
        state = TaskState.FINISHED
    return ReportedTask(
        url=clip(url, MAX_URL),
        name=name.decode("ascii"),
        state=state,
        fraction_done=float_or_none(_text(part, b"fraction_done"), 0, 1),
        deadline=float_or_none(_text(part, b"report_deadline"), 1, _MAX_SECS),
        elapsed_secs=float_or_none(_text(part, b"elapsed_time"), 0, _MAX_SECS),
        remaining_secs=float_or_none(_text(part, b"estimated_cpu_time_remaining"), 0, _MAX_SECS),
    )


def _text(part: bytes, tag: bytes) -> bytes | None:
    """Return the text of the first element of this name; None without one, or if it contains more than text.

    Searches are several times as fast as one regular expression for all names: clients print 35 lines.
    """
    start = part.find(b"<%b>" % tag)
    if start < 0:
        return None
    start += len(tag) + 2
    end = part.find(b"<", start, start + _MAX_TEXT)
    return part[start:end] if end >= 0 and part.startswith(b"</%b>" % tag, end) else None


def _is_set(part: bytes, tag: bytes) -> bool:
    return b"<%b/>" % tag in part or flag(_text(part, tag))


def _digit(raw: bytes | None) -> int | None:
    match = _DIGIT.fullmatch(raw) if raw else None
    return int(match[1]) if match else None
