"""The lease: of all beat processes one sends the periodic tasks, and another one soon after it has stopped.

The database decides, by its own clock. This process knows for how long it may act without asking, by a clock that
nobody sets and that runs on while the process is paused.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID, uuid4

from django.db import connection

from portal.periodic import sql


class Lease:
    """One process's part in it. ``holder``: its name, for people."""

    def __init__(self, holder: str, secs: float) -> None:
        self.holder: Final = holder
        self.secs: Final = secs
        self.token: UUID | None = None
        self._held_until = 0.0

    def ask(self) -> bool:
        """Renew the lease, or take it if it is free; whether this process has it. One statement.

        With a new ``token`` somebody else may have had it meanwhile.
        """
        asked_at = time.monotonic()
        values = {"token": self.token, "new_token": uuid4(), "holder": self.holder, "secs": self.secs}
        row = _one(sql.TAKE, values)
        self.token = row[0] if row else None
        self._held_until = asked_at + self.secs if row else 0.0
        return row is not None

    def reserve(self, name: str) -> bool:
        """Take a task in hand if this process has the lease, which is renewed. One statement."""
        asked_at = time.monotonic()
        row = _one(sql.RESERVE, {"token": self.token, "secs": self.secs, "name": name})
        self._held_until = asked_at + self.secs if row else 0.0
        return row is not None

    def secs_left(self) -> float:
        """For this long no other process can have it; 0 or less: another one may."""
        return self._held_until - time.monotonic()

    def release(self) -> None:
        """Let others have it at once."""
        if self.token is not None:
            _one(sql.RELEASE, {"token": self.token})
        self.token, self._held_until = None, 0.0


@dataclass(frozen=True, slots=True)
class Holder:
    """Who has the lease, and for how long still; negative: since when nobody has it."""

    name: str
    left_secs: float


def last_holder() -> Holder | None:
    """Who has it, or had it last; None on a new site. One statement."""
    row = _one(sql.HOLDER, {})
    return None if row is None else Holder(*row)


def _one(statement: str, values: dict[str, Any]) -> tuple[Any, ...] | None:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        row: tuple[Any, ...] | None = cursor.fetchone() if cursor.description else None
    return row
