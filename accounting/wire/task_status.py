"""A project's answer about tasks: the reply of result_status.php, read into dataclasses. Pure.

BOINC's own form (html/user/result_status.php): <results> with a <result> or an <error> for each name. Only the state
and the credit are read. Raises ProtocolError for other documents, and for replies beyond the limits.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from accounting.engine.client_tasks import MAX_CREDIT, TaskCreditState, standing_of
from accounting.wire.project_replies import MAX_TEXT, ProjectRefused
from portal.wire.scanner import Limits, ProtocolError, TagScanner, as_int, clip, float_or_none

LIMITS: Final = Limits(body_bytes=1 << 19, elements=20_000, text_bytes=1 << 14)
_MAX_STATE: Final = 1000


@dataclass(frozen=True, slots=True)
class TaskStatus:
    """The outcome of a task; ``granted_credit`` only for one that was granted."""

    standing: TaskCreditState
    granted_credit: float | None = None


def parse_task_statuses(body: bytes, asked: Collection[str]) -> dict[str, TaskStatus | None]:
    """Return the answer about each task; None: the project does not know it.

    A task whose numbers are missing or make no sense is left out, as if it had not been asked about; so is one that the
    reply does not mention. Of two answers about a task the first counts.

    Raises ProjectRefused if it is BOINC's document for an error instead.
    """
    scan = TagScanner(body, LIMITS)
    if (root := scan.next()) == b"error":
        fields = dict(scan.fields(root, frozenset()))
        raise ProjectRefused(_error_num(fields), clip(fields.get(b"error_msg", b""), MAX_TEXT, entities=True))
    if root != b"results":
        raise ProtocolError("results", "the message does not begin with this element")
    scan.enter()
    statuses: dict[str, TaskStatus | None] = {}
    while (tag := scan.next()) is not None:
        if tag == b"result":
            name, status = _result(dict(reversed(scan.fields(b"result", frozenset({b"/results"})))))
            if name in asked and status is not None:
                statuses.setdefault(name, status)
        elif tag == b"error":
            name = clip(scan.element_text(tag), 400).removeprefix("name ").removesuffix(" unknown")
            if name in asked:
                statuses.setdefault(name, None)
        elif tag == b"/results":
            return statuses
        elif not tag.startswith(b"/"):
            scan.skip(tag)
    raise ProtocolError("results", "not closed: the message was cut off")


def _error_num(fields: dict[bytes, bytes]) -> int:
    try:
        return as_int("error_num", fields.get(b"error_num", b""), -10_000, 10_000)
    except ProtocolError:
        return 0


def status_of(server_state: int, outcome: int, validate_state: int, credit: float | None) -> TaskStatus | None:
    """Map the project's numbers; None: credit was granted, but it is not a sane number."""
    standing = standing_of(server_state, outcome, validate_state)
    if standing != TaskCreditState.GRANTED:
        return TaskStatus(standing)
    if credit is None or not 0 <= credit <= MAX_CREDIT:
        return None
    return TaskStatus(standing, credit)


def _result(fields: dict[bytes, bytes]) -> tuple[str, TaskStatus | None]:
    name = clip(fields.get(b"name", b""), 300)
    try:
        server_state, outcome, validate_state = (
            as_int(tag, fields[tag.encode()], 0, _MAX_STATE) for tag in ("server_state", "outcome", "validate_state")
        )
    except (KeyError, ProtocolError):
        return name, None
    credit = float_or_none(fields.get(b"granted_credit"), 0, MAX_CREDIT)
    return name, status_of(server_state, outcome, validate_state, credit)
