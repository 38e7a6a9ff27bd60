"""The owner's wishes for one project on one computer. Pure."""

from __future__ import annotations

from typing import Final, NamedTuple


class HostWishes(NamedTuple):
    """The owner's wishes for one computer at one project; all are sent with the next reply.

    ``no_rsc``: resources that it must not use, by BOINC's names ("CPU", "NVIDIA", …). ``update_asked``: the client
    should contact the project at once. ``drop_waiting``: jobs that have not begun are dropped, once no new ones are
    wanted. ``told_suspended`` is not a wish: it says that the client was told of a suspension, and is set by the RPC.
    """

    suspended: bool = False
    no_new_work: bool = False
    excluded: bool = False
    no_rsc: tuple[str, ...] = ()
    update_asked: bool = False
    drop_waiting: bool = False
    told_suspended: bool = False


NO_WISHES: Final = HostWishes()
