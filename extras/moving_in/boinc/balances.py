"""Opening balances: what changed of one since the last import is added to the sums, which may have grown here since."""

from __future__ import annotations

from typing import Final

from credit.engine.rules import MAX_STATISTIC
from extras.moving_in.engine.tally import Tally
from extras.moving_in.engine.values import finite, secs
from extras.moving_in.source import Row

COLUMNS: Final = {"total_credit": "float8", "expavg_credit": "float8", "expavg_secs": "float8"}
READ: Final = {"total_credit": 0.0, "expavg_credit": 0.0, "expavg_time": 0.0}
_SMALLEST: Final = 1e-40
"""Smaller averages are 0: PostgreSQL refuses what decays to less than a number can be."""

_DECAYED: Final = """{of}.expavg_credit * exp(greatest(-600,
    -ln(2) * greatest(0, extract(epoch FROM greatest(c.expavg_at, w.expavg_at) - {of}.expavg_at))::float8 / 604800))"""


def statements(owner: str) -> list[str]:
    """The statements that carry over the balances of ``owner``, which is user or host, from `moving_rows`.

    Sums and averages are changed by what the balance differs from the last one that was carried over. A record that
    was merged here is a part of the one that it was merged into. Locks the openings, then the sums.
    """
    into = "coalesce(p.merged_into_id, p.id)" if owner == "host" else "p.id"
    target = f"credit_{owner}credit"
    return [
        f"""
INSERT INTO {target} ({owner}_id, total_credit, expavg_credit)
SELECT DISTINCT {into}, 0, 0 FROM moving_rows m JOIN portal_{owner} p ON p.id = m.id ORDER BY 1
    ON CONFLICT DO NOTHING""",
        f"""
  WITH before AS MATERIALIZED (
SELECT o.* FROM credit_{owner}opening o JOIN moving_rows m ON m.id = o.{owner}_id),
       written AS (
INSERT INTO credit_{owner}opening AS o ({owner}_id, total_credit, expavg_credit, expavg_at)
SELECT m.id, m.total_credit, m.expavg_credit, to_timestamp(m.expavg_secs)
  FROM moving_rows m JOIN portal_{owner} p ON p.id = m.id ORDER BY m.id
    ON CONFLICT ({owner}_id) DO UPDATE
   SET total_credit = excluded.total_credit, expavg_credit = excluded.expavg_credit, expavg_at = excluded.expavg_at
 WHERE (o.total_credit, o.expavg_credit, o.expavg_at)
       IS DISTINCT FROM (excluded.total_credit, excluded.expavg_credit, excluded.expavg_at)
RETURNING {owner}_id AS id, total_credit, expavg_credit, expavg_at)
UPDATE {target} c
   SET total_credit = greatest(c.total_credit + w.total_credit - coalesce(b.total_credit, 0), 0),
       expavg_credit = greatest(coalesce({_DECAYED.format(of="c")}, 0) + coalesce({_DECAYED.format(of="w")}, 0)
                                - coalesce({_DECAYED.format(of="b")}, 0), 0),
       expavg_at = greatest(c.expavg_at, w.expavg_at)
  FROM written w JOIN portal_{owner} p ON p.id = w.id LEFT JOIN before b ON b.{owner}_id = w.id
 WHERE c.{owner}_id = {into}""",
    ]


def values(row: Row, tally: Tally, now: float) -> tuple[float, float, float | None]:
    """Total, recent average, and its time. What cannot be is told, and 0."""
    total = finite(row["total_credit"], 0, MAX_STATISTIC / 10)
    average = finite(row["expavg_credit"], 0, MAX_STATISTIC / 10)
    if total is None or average is None:
        tally.tell("credit that is negative, or too much: 0 is carried over", row["id"])
    at = secs(row["expavg_time"], now)
    if at is None or average is None or average < _SMALLEST:
        average = 0.0
    return total or 0.0, average, at
