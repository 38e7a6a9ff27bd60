"""The statement that reads ready jobs and leases them to a process; its file says what it locks."""

from __future__ import annotations

from typing import Final

from credit.engine.states import ServerState
from portal.clients.database.sql_files import statement

BLOCK: Final = 16
"""Neighbouring places of the queue, whose jobs are leased together."""
LEASE_JOBS: Final = statement(__file__, "lease", BLOCK=BLOCK, UNSENT=ServerState.UNSENT)
