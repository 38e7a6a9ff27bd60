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
    kept: StoredCredit | None, said: ReportedCredit, *, read_since: int | None, known_since: int
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
    if kept is not None and said.as_of <= kept.as_of:
        return kept, 0
    if kept is None or 0 < kept.made_at < said.made_at:
        is_ours = read_since is not None and said.made_at >= max(read_since, known_since)
        grant = said.total if is_ours else 0
        highest = said.total
    else:
        grant = max(0, said.total - kept.highest)
        highest = max(said.total, kept.highest)
    counted = (kept.counted if kept is not None else 0) + grant
    # Exports that leave it out now and then, or say it earlier, do not make the same record a new one each time.
    made_at = max(said.made_at, kept.made_at if kept is not None else 0)
    return StoredCredit(said.total, highest, counted, made_at, said.as_of), grant
