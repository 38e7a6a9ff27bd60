"""A client's tasks, and their fate at their projects. Pure.

A task is what BOINC's database calls a result. Clients report three things of it (client_state.h, common_defs.h): the
result's state, that of its process, and whether the client's scheduler lets it run.
"""

from __future__ import annotations

import datetime as dt
from enum import IntEnum
from typing import Final

ASKED_AFTER: Final = dt.timedelta(days=1)
"""Wait before a task that is still in its computer's list is queried; one that left the list is queried at once."""
FIRST_WAIT: Final = dt.timedelta(hours=1)
LONGEST_WAIT: Final = dt.timedelta(days=1)
UNKNOWN_MAX: Final = 3
"""After this many "unknown" answers in a row, a project is no longer asked about a task."""
MAX_CREDIT: Final = 1e9
"""More credit than any single task is ever granted."""


class TaskState(IntEnum):
    """What a computer does with a task."""

    RUNNING = 1
    PAUSED = 2
    READY = 3
    DOWNLOADING = 4
    UPLOADING = 5
    FINISHED = 6
    FAILED = 7
    ABORTED = 8


class TaskCreditState(IntEnum):
    """The project's state of a task: only GRANTED, REFUSED and FAILED are final."""

    OPEN = 0
    PENDING = 1
    GRANTED = 2
    REFUSED = 3
    FAILED = 4
    UNKNOWN = 5


FINAL: Final = frozenset({TaskCreditState.GRANTED, TaskCreditState.REFUSED, TaskCreditState.FAILED})

# The client's states of a result; the remaining ones follow from its process.
_RESULT_STATES: Final = {
    0: TaskState.DOWNLOADING,
    1: TaskState.DOWNLOADING,
    3: TaskState.FAILED,
    4: TaskState.UPLOADING,
    5: TaskState.FINISHED,
    6: TaskState.ABORTED,
    7: TaskState.FAILED,
}
_EXECUTING: Final = 1
_SCHEDULED: Final = 2


def task_state(
    result_state: int, process_state: int | None, scheduler_state: int | None, *, is_suspended: bool
) -> TaskState:
    """Map the client's states to ours; ``process_state``, ``scheduler_state`` of None mean no process: not begun."""
    if (state := _RESULT_STATES.get(result_state)) is not None:
        return state
    if process_state is None and scheduler_state is None:
        return TaskState.PAUSED if is_suspended else TaskState.READY
    if process_state == _EXECUTING and scheduler_state == _SCHEDULED and not is_suspended:
        return TaskState.RUNNING
    return TaskState.PAUSED


# BOINC's numbers for a result's states at the server
_OVER: Final = 5
_SUCCESS: Final = 1
_NO_REPLY: Final = 4
_VALID: Final = 1
_REFUSED: Final = frozenset({2, 5})


def standing_of(server_state: int, outcome: int, validate_state: int) -> TaskCreditState:
    """Interpret a project's numbers."""
    if server_state != _OVER:
        return TaskCreditState.OPEN
    if outcome == _NO_REPLY:
        # Its deadline has passed; it may still be reported.
        return TaskCreditState.OPEN
    if outcome != _SUCCESS:
        return TaskCreditState.REFUSED if validate_state in _REFUSED else TaskCreditState.FAILED
    if validate_state == _VALID:
        return TaskCreditState.GRANTED
    return TaskCreditState.REFUSED if validate_state in _REFUSED else TaskCreditState.PENDING


def wait_before(asks: int) -> dt.timedelta:
    """Return how long to wait after this many questions about a task, including the last one."""
    return min(FIRST_WAIT * (1 << min(max(asks - 1, 0), 10)), LONGEST_WAIT)
