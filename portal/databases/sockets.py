"""The sockets below database connections: whom they lead to, and how another thread ends them."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from typing import Any

import psycopg

Peer = Any
"""The server's end of a connection as sockets say it: a tuple of address and port, or the path of a Unix socket."""
Connection = psycopg.Connection[Any] | psycopg.AsyncConnection[Any]


def peer_of(connection: Connection) -> Peer:
    """Whom the connection leads to; None if it is lost."""
    with suppress(OSError, psycopg.Error), _duplicate(connection) as duplicate:
        return duplicate.getpeername()
    return None


def cut(connection: Connection, peer: Peer) -> bool:
    """End the connection's socket, so that who waits for its server gets an error; its owner closes it.

    False, and nothing happens, if it does not lead there any more: the socket's number may be another's by now.
    """
    with suppress(OSError, psycopg.Error), _duplicate(connection) as duplicate:
        if duplicate.getpeername() == peer:
            duplicate.shutdown(socket.SHUT_RDWR)
            return True
    return False


def _duplicate(connection: Connection) -> socket.socket:
    return socket.socket(fileno=os.dup(connection.pgconn.socket))
