"""Whether a client's data folder is a copy: two clients, mostly on two machines, that send the same computer's number.

A client counts each request that it sends, also those that fail (rpc_seqno), and begins with 0 when it gets a new
number. So of one client the numbers rise. Of two they overlap: sooner or later one of them sends a number that is
lower than the last, or the same. A crash may take a single client back by a request: then it has the same cross-project
id (CPID), and the jobs that it had before that request. Its next numbers rise again, while two clients that are in step
soon send the same number a second time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

MAX_CPIDS: Final = 3
_NEAR: Final = 2
"""A client in step repeats a number, and then one of the next so many."""


def seen(cpids: Sequence[str], cpid: str) -> list[str]:
    """``cpids`` after one more request: the CPIDs of a computer's requests, one for each change, the newest last."""
    if not cpid or (cpids and cpids[-1] == cpid):
        return list(cpids)
    return [*cpids, cpid][-MAX_CPIDS:]


def repeated(seqno: int, known_seqno: int, repeated_seqno: int | None, *, knows_other_jobs: bool) -> int | None:
    """The new ``repeated_seqno``: the number that last came twice, the second time with other jobs."""
    is_near = repeated_seqno is not None and 0 <= seqno - repeated_seqno <= _NEAR
    return seqno if seqno == known_seqno and (knows_other_jobs or is_near) else repeated_seqno


def is_copy(
    seqno: int,
    cpid: str,
    known_seqno: int,
    cpids: Sequence[str],
    repeated_seqno: int | None = None,
    *,
    knows_other_jobs: bool,
) -> bool:
    """Whether a request with this number and CPID comes from another client than the computer's.

    ``known_seqno`` and ``cpids``: of the requests before. ``knows_other_jobs``: its jobs cannot be those of the client
    that sent the last one. ``repeated_seqno``: see `repeated`.

    A change of machine or network changes a client's CPID once. If the first CPID comes back, there are two clients.
    The one that came first stays, and the other is a copy when it comes again.
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
    is_second_time = repeated_seqno is not None and 0 < seqno - repeated_seqno <= _NEAR
    return has_other_cpid or (knows_other_jobs and is_second_time)
