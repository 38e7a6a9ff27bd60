"""Whether a client's data folder is a copy: two clients, mostly on two machines, that send the same computer's number.

A client counts each request that it sends, also those that fail (rpc_seqno), and begins with 0 when it gets a new
number. So of one client the numbers rise. Of two they overlap: sooner or later one of them sends a number that is
lower than the last, or the same. A crash may take a single client back by a request; then it still has the same
cross-project id (CPID) and the same jobs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

MAX_CPIDS: Final = 3


def seen(cpids: Sequence[str], cpid: str) -> list[str]:
    """``cpids`` after one more request: the CPIDs of a computer's requests, one for each change, the newest last."""
    if not cpid or (cpids and cpids[-1] == cpid):
        return list(cpids)
    return [*cpids, cpid][-MAX_CPIDS:]


def is_copy(seqno: int, cpid: str, known_seqno: int, cpids: Sequence[str], *, knows_other_jobs: bool) -> bool:
    """Whether a request with this number and CPID comes from another client than the computer's.

    ``known_seqno`` and ``cpids``: of the requests before. ``knows_other_jobs``: its jobs cannot be those of the client
    that sent the last one.

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
    return has_other_cpid or knows_other_jobs
