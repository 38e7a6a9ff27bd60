"""What a project granted a computer, from the totals of its exports. Pure.

An export says a total, not when it was granted. So each export grants what its total has grown, on the day of its own
time. The rules are told in docs/explanation/statistics-import.md.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReportedCredit:
    """What an export says of one record of a computer. Credit in micro-credits, times in seconds since 1970.

    ``as_of``: the time of the export; ``made_at``: when the project made the record, 0 if it does not say.
    """

    total: int
    made_at: int
    as_of: int


@dataclass(frozen=True, slots=True)
class StoredCredit:
    """What we keep of it. ``highest``: the highest total so far, below which nothing counts; ``counted``: the sum of
    all grants, which only grows.
    """

    total: int
    highest: int
    counted: int
    made_at: int
    as_of: int


def apply(
    stored: StoredCredit | None, reported: ReportedCredit, *, read_since: int | None, known_since: int
) -> tuple[StoredCredit, int]:
    """What is kept after an export, and what it grants on its day: 0 or more.

    ``read_since``: the time of the first export that was read of the project, None if this is it. ``known_since``: when
    the computer first reported to us.

    * An export that is not later than the last one changes nothing.
    * The first total of a record is what was granted before, so it is no day's. But if the project made the record
      after we began to read its exports, and knew the computer already, all of it was granted since.
    * A total below the highest one was taken back: it grants nothing until it is higher again.
    * A record with the same number that was made later is another one: the project started again. An export that does
      not say when it was made, or says an earlier time, means the same one.
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
    # Exports that leave it out now and then, or say it earlier, do not make the same record a new one each time.
    made_at = max(reported.made_at, stored.made_at if stored is not None else 0)
    return StoredCredit(reported.total, highest, counted, made_at, reported.as_of), grant
