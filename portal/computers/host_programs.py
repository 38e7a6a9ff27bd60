"""Which programs of this site's own project a computer has run; the project server knows."""

from __future__ import annotations

from collections.abc import Callable

program_readers: list[Callable[[int], frozenset[tuple[str, int]]]] = []
"""Called with a computer's number: the names of apps, each with a version's number. Apps append theirs in `ready()`."""


def programs_of(host_id: int) -> frozenset[tuple[str, int]]:
    """All that the apps know."""
    return frozenset().union(*(read(host_id) for read in program_readers))
