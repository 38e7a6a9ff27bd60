"""What the steps of workunits, results and batches have in common."""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

from credit.engine.rules import LEAST_CREDIT, MAX_CREDIT
from extras.moving_in.engine.values import finite

NEVER: Final = 2**31 - 1
"""The time that stands for none."""
MOST_BYTES: Final = 2**62
PRIORITIES: Final = (-(2**15), 2**15 - 1)

IS_OPEN: Final = """({w}.assimilate_state <> 2 OR {w}.file_delete_state = 0
 OR EXISTS (SELECT 1 FROM result o WHERE o.workunitid = {w}.id AND o.server_state <> 5))"""
"""A workunit that something is still to become of: as long as its files are there, a late result counts."""
CANONICAL: Final = """(SELECT c.{column} FROM result c
 WHERE c.workunitid = {w}.id AND c.outcome = 1 AND c.validate_state = 1
 ORDER BY c.id <> {w}.canonical_resultid, c.id LIMIT 1)"""
"""The canonical result, or of those that are valid another one, if that was purged."""


def moment(value: Any) -> dt.datetime | None:
    secs = finite(value, 1, NEVER - 1)
    return dt.datetime.fromtimestamp(secs, dt.UTC) if secs is not None else None


def granted(value: Any) -> float:
    """Credit as it may be granted here."""
    credit = finite(value, LEAST_CREDIT, MAX_CREDIT)
    return 0.0 if credit is None else credit


def xml_of(raw: bytes | None) -> str:
    return (raw or b"").decode("utf-8", "replace")
