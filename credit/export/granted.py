"""The credit that this site granted to everybody, published or not.

For this site's own account manager, which shows volunteers only their own credit.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from psycopg import Connection

from credit.export import sql
from credit.export.run import read_snapshot

_BATCH_ROWS: Final = 5_000

Row = tuple[int, float, float, float, int, bytes]
"""Number, total credit, recent average (credits a day), its time, when it was created (seconds since 1970), and the
cross-project id as exported.
"""


@dataclass(frozen=True, slots=True)
class GrantedCredit:
    """Rows as of one moment (seconds since 1970): batches, to be read once, first of volunteers, then of computers."""

    as_of: int
    users: Iterator[list[Row]]
    hosts: Iterator[list[Row]]


@contextmanager
def granted_to_all() -> Iterator[GrantedCredit]:
    """Yield every account and computer with credit, from a snapshot that ends with the block. Locks nothing."""
    with read_snapshot() as snapshot:
        (as_of,) = snapshot.execute(sql.AS_OF).fetchone() or (0,)
        yield GrantedCredit(as_of, _rows(snapshot, sql.GRANTED_USERS), _rows(snapshot, sql.GRANTED_HOSTS))


def _rows(snapshot: Connection[Any], statement: str) -> Iterator[list[Row]]:
    with snapshot.cursor("granted") as rows:
        rows.execute(statement)
        while batch := rows.fetchmany(_BATCH_ROWS):
            yield batch
