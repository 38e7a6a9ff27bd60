"""Decide whether two addresses mean the same project. Pure.

BOINC clients hold a project's address in many spellings. They look a project up without scheme, `www.`, case and final
slash (client/client_state.cpp, `lookup_project`), follow redirects from http to https and to a new master URL that a
scheduler names, and keep what an owner typed. The key leaves out what cannot tell two projects apart.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

_DEFAULT_PORTS: Final = {"http": "80", "https": "443"}
_SLASHES: Final = re.compile("//+")
_PORT: Final = re.compile(r"(?P<host>.*?):0*(?P<port>[0-9]*)")
_MAX_BYTES: Final = 255
"""No client holds a longer address."""
# The cache's size. Reported addresses come from strangers, at most this long (bytes).
_REMEMBERED: Final = 4096


class _Parts(NamedTuple):
    """An address in pieces: ``host`` in lower case without its final dot, ``port`` empty if it is the scheme's."""

    scheme: str
    host: str
    port: str
    path: str


def _split(url: str) -> _Parts:
    scheme, _, rest = url.strip().partition("://")
    scheme = scheme.lower()
    host, _, path = _SLASHES.sub("/", rest.lstrip("/")).partition("/")
    port = ""
    if match := _PORT.fullmatch(host):
        host, port = match["host"], match["port"]
    host = host.lower().removesuffix(".")
    return _Parts(scheme, host, "" if port == _DEFAULT_PORTS.get(scheme) else port, path.removesuffix("/"))


@lru_cache(maxsize=_REMEMBERED)
def address_key(url: str) -> str:
    """Return the key of a project's address, the same for all spellings: such as ``example.org/science``.

    Leaves out the scheme, `www.`, the scheme's own port, the case and final dot of the host, and doubled and final
    slashes. Keeps the path's case, as servers tell paths apart by it. Empty for anything but an http or https address,
    and for one that no client can have, since an answer would have to repeat it unchanged.
    """
    if len(url.encode(errors="replace")) > _MAX_BYTES or not url.isprintable():
        return ""
    parts = _split(url)
    host = parts.host.removeprefix("www.") or parts.host
    if not host or parts.scheme not in _DEFAULT_PORTS:
        return ""
    return host + (f":{parts.port}" if parts.port else "") + (f"/{parts.path}" if parts.path else "")


@lru_cache(maxsize=_REMEMBERED)
def is_same_place(url: str, trusted: str) -> bool:
    """Whether data meant for ``trusted`` may go to ``url``: scheme, host, port and path are the same, or only the
    scheme is upgraded from http to https. `www.` makes a different host, but upper case in a path makes no different
    path: clients write addresses in lower case that their project does not.
    """
    one, other = _split(url), _split(trusted)
    if (one.host, one.port, one.path.lower()) != (other.host, other.port, other.path.lower()):
        return False
    return one.scheme == other.scheme or (one.scheme, other.scheme, one.port) == ("https", "http", "")
