"""Derive what a project granted a computer from the totals in its exports. Pure.

An export has a total, not when it was granted. So each export grants the growth of its total, on the day of its own
time. docs/explanation/statistics-import.md explains the rules.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReportedCredit:
    """An export's total for one record of a computer. Credit in micro-credits, times in seconds since 1970.

    ``as_of``: the time of the export; ``made_at``: when the project made the record, 0 if the export does not say.
    """

    total: int
    made_at: int
    as_of: int


@dataclass(frozen=True, slots=True)
class StoredCredit:
    """What we store of an export. ``highest``: the highest total so far, below which nothing counts; ``counted``: the
    sum of all grants, which only grows.
    """

    total: int
    highest: int
    counted: int
    made_at: int
    as_of: int


def apply(
    stored: StoredCredit | None, reported: ReportedCredit, *, read_since: int | None, known_since: int
) -> tuple[StoredCredit, int]:
    """Return what is stored after an export, and what it grants on its day: 0 or more.

    ``read_since``: the time of the project's first export that was read, None if this is it. ``known_since``: when the
    computer first reported to us.

    * An export that is not later than the last one changes nothing.
    * The first total of a record was granted earlier, so it belongs to no day. But if the project made the record after
      we began to read its exports, and knew the computer already, all of it was granted since.
    * A total below the highest one was taken back: it grants nothing until it is higher again.
    * A record with the same number that was made later is a different one: the project started over. An export that
      gives no creation time, or an earlier one, means the same record.
    """
    if stored is not None and reported.as_of <= stored.as_of:
        return stored, 0
    if stored is None or 0 < stored.made_at < reported.made_at:
        is_ours = read_since is not None and reported.made_at >= max(read_since, known_since)
        grant = reported.total if is_ours else 0
        highest = reported.total
    else:
        grant = max(0, reported.total - stored.highest)
        highest = max(reported.total, stored.highest)
    counted = (stored.counted if stored is not None else 0) + grant
    # Exports that sometimes leave the time out, or give an earlier one, do not start a new record each time.
    made_at = max(reported.made_at, stored.made_at if stored is not None else 0)
    return StoredCredit(reported.total, highest, counted, made_at, reported.as_of), grant
