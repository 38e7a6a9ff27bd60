"""A project's report on its daemons and queues: the reply of server_status.php?xml=1, read into a dataclass. Pure.

Source: BOINC's html/user/server_status.php. Few projects answer in full, so everything in it may be missing. Of two
elements the first counts. Raises ProtocolError for other documents, and for replies beyond the hard limits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import cattrs

from portal.languages.messages import Message
from portal.wire.scanner import Limits, ProtocolError, TagScanner, clip, float_or_none

LIMITS: Final = Limits(body_bytes=1 << 20, elements=20_000, text_bytes=1 << 18)
MAX_DAEMONS: Final = 100
MAX_NAME: Final = 60
_MAX_NUMBER: Final = 1e15

_ROOT: Final = b"server_status"
_COUNTS: Final = frozenset(
    {
        b"results_ready_to_send", b"results_in_progress", b"workunits_waiting_for_validation",
        b"workunits_waiting_for_assimilation", b"transitioner_backlog_hours", b"users_with_recent_credit",
        b"hosts_with_recent_credit",
    }
)  # fmt: skip
_RUNS: Final = frozenset({"running", "disabled"})
"""The state of a daemon that an operator there has switched off."""


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """``stopped``: daemons that should run and do not. ``counts``: by BOINC's name, hours or a number of things."""

    stopped: tuple[str, ...] = ()
    counts: Mapping[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the status as it is stored; `status_from_json` reads it back."""
        return {"stopped": list(self.stopped), "counts": dict(self.counts)}


def status_from_json(stored: Mapping[str, Any]) -> ServerStatus:
    return cattrs.structure(stored, ServerStatus)


def parse_server_status(data: bytes) -> ServerStatus:
    """Read the reply. Raises ProtocolError."""
    scanner = TagScanner(data, LIMITS)
    is_reply = False
    ndaemons = 0
    stopped: list[str] = []
    counts: dict[str, float] = {}
    while (tag := scanner.next()) is not None:
        if tag == _ROOT:
            is_reply = True
        elif tag == b"daemon":
            ndaemons += 1
            fields = dict(scanner.fields(tag, frozenset({b"daemon"})))
            name, state = (clip(fields.get(tag, b""), MAX_NAME, entities=True) for tag in (b"command", b"status"))
            if ndaemons <= MAX_DAEMONS and name and state and state.lower() not in _RUNS and name not in stopped:
                stopped.append(name)
        elif tag in _COUNTS:
            number = float_or_none(scanner.element_text(tag), 0, _MAX_NUMBER)
            if number is not None:
                counts.setdefault(tag.decode(), number)
    if not is_reply:
        raise ProtocolError("answer", Message("answer_no_status"))
    return ServerStatus(tuple(stopped), counts)
