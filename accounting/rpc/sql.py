"""The two statements of the account-manager RPC, each for several requests; their files say what they lock."""

from __future__ import annotations

import datetime as dt
from functools import lru_cache
from typing import Final

from accounting.ledger.partitions import partition_of
from portal.clients.database.sql_files import statement
from portal.clients.effects import Statement
from portal.computers.host_columns import HOST_COLUMNS

MAX_SPEEDS_NOTED: Final = 64
"""Speeds of a computer noted as replaced on a day, in addition to those of one report."""

READ: Final = statement(__file__, "read")


@lru_cache(maxsize=64)
def write(month: dt.date, *, waits: bool, notes: bool, answers: bool, described: bool, tasks: bool) -> Statement:
    """Return the write for requests that came in one month; ``waits``: for rows that others hold, else skips them.

    It has only the necessary parts, as starting and finishing a part costs as much as running it.
    """
    return statement(
        __file__,
        "write",
        PARTITION=[partition_of(month)],
        HOST_COLUMNS=HOST_COLUMNS,
        MAX_SPEEDS_NOTED=MAX_SPEEDS_NOTED,
        SKIPS_LOCKED=not waits,
        NOTES=notes,
        ANSWERS=answers,
        DESCRIBED=described,
        TASKS=tasks,
    )
