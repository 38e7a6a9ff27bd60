"""Detects copies of a client's data folder: two clients, usually on two machines, that send the same computer's number.

A client counts each request that it sends, even those that fail (rpc_seqno), and begins with 0 when it gets a new
number. So one client's numbers rise. Two clients' overlap: sooner or later one of them sends a number that is lower
than the last, or equal. A crash may take a single client back by a request: then it has the same cross-project id
(CPID), and the jobs that it had before that request. Its next numbers rise again. A client may crash again soon, while
two clients in step send equal numbers repeatedly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

MAX_CPIDS: Final = 3
_NEAR: Final = 2
"""A client in step repeats a number, and then one of the next this many."""
_MAX_CRASHES: Final = 2
"""A single client may lose its state this often in a short time."""


class Repeats(NamedTuple):
    """The last ``seqno`` that came twice, soon after the one before; ``times``: how many came with other jobs."""

    seqno: int | None = None
    times: int = 0


NO_REPEATS: Final = Repeats()


def seen(cpids: Sequence[str], cpid: str) -> list[str]:
    """Return ``cpids`` after one more request: the CPIDs of a computer's requests, one for each change, newest last."""
    if not cpid or (cpids and cpids[-1] == cpid):
        return list(cpids)
    return [*cpids, cpid][-MAX_CPIDS:]


def repeated(seqno: int, known_seqno: int, repeats: Repeats, *, knows_other_jobs: bool) -> Repeats:
    """Return ``repeats`` after a request with this number."""
    if seqno != known_seqno or seqno == repeats.seqno:
        return repeats
    if _is_near(seqno, repeats):
        return Repeats(seqno, repeats.times + knows_other_jobs)
    return Repeats(seqno, 1) if knows_other_jobs else repeats


def _is_near(seqno: int, repeats: Repeats) -> bool:
    return repeats.seqno is not None and 0 < seqno - repeats.seqno <= _NEAR


def is_copy(
    seqno: int,
    cpid: str,
    known_seqno: int,
    cpids: Sequence[str],
    repeats: Repeats = NO_REPEATS,
    *,
    knows_other_jobs: bool,
) -> bool:
    """Whether a request with this number and CPID comes from a different client than the computer's.

    ``known_seqno`` and ``cpids``: of earlier requests. ``knows_other_jobs``: its jobs cannot be those of the client
    that sent the last one.

    A change of machine or network changes a client's CPID once. If the first CPID comes back, there are two clients.
    The one that came first stays, and the other counts as a copy when it comes again.
    """
    has_alternated = len(cpids) == MAX_CPIDS and cpids[0] == cpids[2] and cpids[1] == cpid
    if has_alternated:
        return True
    comes_back = len(cpids) >= 2 and cpids[-2] == cpid
    if seqno > known_seqno or comes_back:
        return False
    if seqno < known_seqno:
        return True
    has_other_cpid = bool(cpid and cpids and cpids[-1] != cpid)
    return has_other_cpid or (knows_other_jobs and _is_near(seqno, repeats) and repeats.times >= _MAX_CRASHES)
