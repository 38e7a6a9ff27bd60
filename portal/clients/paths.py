"""The addresses that BOINC clients request, each declared once: settings.CLIENT_PATHS. Pure.

Everything else follows from an entry: the use case on the event loop, Django's view and URL, the limits, the log line
and the counters.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

PROJECT: Final = "/project/"
_SCHEDULER: Final = "scheduler"
_UPLOADS: Final = "file_upload_handler"
_DOWNLOADS: Final = f"{PROJECT}download/"
USUAL_BODY_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class ClientPath:
    """One address.

    ``handler``: "module.function", which is given a `portal.clients.messages.ClientRequest` and returns a ClientReply,
    or the steps of a use case that return one. ``root``: the element that its error replies have at their root.
    ``body_bytes``: how much of a body is read; the rest of a longer one, up to ``longest_bytes``, is discarded, and a
    still longer one is refused. ``is_stream``: the use case reads the body itself, a part at a time, without these
    limits.
    """

    path: str
    handler: str
    root: str
    body_bytes: int = USUAL_BODY_BYTES
    longest_bytes: int = 0
    is_stream: bool = False

    def load(self) -> Callable[..., Any]:
        """The handler itself; imports its module."""
        module, _, name = self.handler.rpartition(".")
        function: Callable[..., Any] = getattr(import_module(module), name)
        return function


def present_path(path: str, former: Iterable[str], paths: Collection[str]) -> str:
    """Our address that answers a request to this one.

    ``former``: where the project was before it moved here, as settings.FORMER_PATHS has it; ``paths``: those that
    clients request. A project that was at "/" leaves all other addresses there to the site.
    """
    for prefix in former:
        if not prefix.endswith("/"):
            if path == prefix:
                return PROJECT + (_UPLOADS if prefix.endswith(_UPLOADS) else _SCHEDULER)
        elif path.startswith(prefix):
            here = PROJECT + path.removeprefix(prefix)
            if prefix != "/" or here.startswith(_DOWNLOADS) or (here in paths and path not in paths):
                return here
    return path


def with_former(paths: Mapping[str, ClientPath], former: Iterable[str]) -> dict[str, ClientPath]:
    """``paths``, and the former addresses that lead to them."""
    all_paths = dict(paths)
    for prefix in former:
        if prefix.endswith("/"):
            for path, route in paths.items():
                if path.startswith(PROJECT):
                    all_paths.setdefault(prefix + path.removeprefix(PROJECT), route)
        else:
            all_paths[prefix] = paths[present_path(prefix, [prefix], ())]
    return all_paths


def by_path(*paths: ClientPath) -> dict[str, ClientPath]:
    return {client_path.path: client_path for client_path in paths}
