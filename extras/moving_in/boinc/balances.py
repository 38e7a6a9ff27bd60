"""Opening balances: what changed of one since the last import is added to the sums, which may have grown here since."""

from __future__ import annotations

from typing import Final

from credit.engine.rules import MAX_STATISTIC
from extras.moving_in.engine.tally import Tally
from extras.moving_in.engine.values import finite, secs
from extras.moving_in.machinery.steps import updated
from extras.moving_in.source import Row

COLUMNS: Final = {"total_credit": "float8", "expavg_credit": "float8", "expavg_secs": "float8"}
READ: Final = {"total_credit": 0.0, "expavg_credit": 0.0, "expavg_time": 0.0}
_SMALLEST: Final = 1e-40
"""Smaller averages are 0: PostgreSQL refuses what decays to less than a number can be."""

_DECAYED: Final = """coalesce({of}.expavg_credit * exp(greatest(-600,
    -ln(2) * greatest(0, extract(epoch FROM {at} - {of}.expavg_at))::float8 / 604800)), 0)"""


def opening(owner: str) -> str:
    """The statement that keeps the balances of ``owner``, which is user, host or team, from `moving_rows`."""
    return f"""
INSERT INTO credit_{owner}opening AS o ({owner}_id, total_credit, expavg_credit, expavg_at)
SELECT m.id, m.total_credit, m.expavg_credit, to_timestamp(m.expavg_secs)
  FROM moving_rows m JOIN {"credit" if owner == "team" else "portal"}_{owner} p ON p.id = m.id ORDER BY m.id
    ON CONFLICT ({owner}_id) DO UPDATE {updated(("total_credit", "expavg_credit", "expavg_at"))}"""


def statements(owner: str) -> list[str]:
    """The statements that carry over the balances of ``owner``, which is user or host, from `moving_rows`.

    Sums and averages are changed by what the balance differs from the last one that was carried over. Records
    that were merged here are parts of the one that they were merged into. Locks the openings, then the sums.
    """
    into = "coalesce(p.merged_into_id, p.id)" if owner == "host" else "p.id"
    target, at = f"credit_{owner}credit", "greatest(c.expavg_at, p.latest_at)"
    return [
        f"""
INSERT INTO {target} ({owner}_id, total_credit, expavg_credit)
SELECT DISTINCT {into}, 0, 0 FROM moving_rows m JOIN portal_{owner} p ON p.id = m.id ORDER BY 1
    ON CONFLICT DO NOTHING""",
        f"""
  WITH before AS MATERIALIZED (
SELECT o.* FROM credit_{owner}opening o JOIN moving_rows m ON m.id = o.{owner}_id),
       written AS ({opening(owner)}
RETURNING {owner}_id AS id, total_credit, expavg_credit, expavg_at),
       parts AS (
SELECT w.id, {into} AS into_id, max(w.expavg_at) OVER (PARTITION BY {into}) AS latest_at
  FROM written w JOIN portal_{owner} p ON p.id = w.id),
       changes AS (
SELECT p.into_id, {at} AS at, sum(w.total_credit - coalesce(b.total_credit, 0)) AS total_credit,
       sum({_DECAYED.format(of="w", at=at)} - {_DECAYED.format(of="b", at=at)}) AS expavg_credit
  FROM parts p JOIN written w ON w.id = p.id JOIN {target} c ON c.{owner}_id = p.into_id
  LEFT JOIN before b ON b.{owner}_id = p.id
 GROUP BY 1, 2)
UPDATE {target} c
   SET total_credit = greatest(c.total_credit + g.total_credit, 0),
       expavg_credit = greatest({_DECAYED.format(of="c", at="g.at")} + g.expavg_credit, 0), expavg_at = g.at
  FROM changes g WHERE c.{owner}_id = g.into_id""",
    ]


def values(row: Row, tally: Tally, now: float) -> tuple[float, float, float | None]:
    """Total, recent average, and its time. What cannot be is told, and 0."""
    total = finite(row["total_credit"], 0, MAX_STATISTIC / 10)
    average = finite(row["expavg_credit"], 0, MAX_STATISTIC / 10)
    if total is None or average is None:
        tally.tell("credit is negative or too large: 0 is carried over", row["id"])
    at = secs(row["expavg_time"], now)
    if at is None or average is None or average < _SMALLEST:
        average = 0.0
    return total or 0.0, average, at
