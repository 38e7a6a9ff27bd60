"""SQL that reads ready jobs and leases them to a process; lease.sql says what it locks."""

from __future__ import annotations

from typing import Final

from credit.engine.states import ServerState
from portal.clients.database.sql_files import statement

BLOCK: Final = 16
"""How many neighbouring positions of the queue form a block, whose jobs are leased together."""
LEASE_JOBS: Final = statement(__file__, "lease", BLOCK=BLOCK, SIZED=False, UNSENT=ServerState.UNSENT)
LEASE_JOBS_OF_SIZE: Final = statement(__file__, "lease", BLOCK=BLOCK, SIZED=True, UNSENT=ServerState.UNSENT)
