"""What became of tasks, many in one request: result_status.php, which account managers use.

The name of a task reveals its state and its credit, but neither its volunteer nor its computer.
"""

from __future__ import annotations

import datetime as dt
from typing import Final

from credit.statistics.exports import ExportedTask, tasks_by_name
from portal.clients.asked import Asked
from portal.clients.messages import ClientReply
from portal.people.accounts import ClientAuthError
from portal.wire.boinc_errors import ERR_GENERIC
from scheduler.web_rpcs.documents import Element, reply

NAMES_AT_ONCE: Final = 100
MAX_NAMES_CHARS: Final = 20_000


def status(asked: Asked, _now: dt.datetime) -> ClientReply:
    """Return the state and credit of up to a hundred tasks by name, separated by commas; one statement."""
    names = list(dict.fromkeys(name for part in asked.given.get("names", "").split(",") if (name := part.strip())))
    if not names:
        raise ClientAuthError(ERR_GENERIC, "Give the names of tasks, separated by commas: names=one,two")
    if len(names) > NAMES_AT_ONCE:
        raise ClientAuthError(ERR_GENERIC, f"Ask about at most {NAMES_AT_ONCE} tasks at once.")
    own_tasks = tasks_by_name(names)
    return reply("results", [_element(name, own_tasks.get(name)) for name in names])


def _element(name: str, task: ExportedTask | None) -> Element:
    if task is None:
        return "error", f"name {name} unknown"
    return (
        "result",
        [
            ("name", task.name),
            ("server_state", task.server_state),
            ("outcome", task.outcome),
            ("validate_state", task.validate_state),
            ("granted_credit", task.granted_credit or 0),
        ],
    )
