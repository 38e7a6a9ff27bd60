"""Drops Django's own connection after its server was lost."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from django.db import DEFAULT_DB_ALIAS, Error, connections


def drop_connection() -> None:
    """Give the pool back a closed connection: even if its server still answers, it is no longer the primary."""
    ours: Any = connections[DEFAULT_DB_ALIAS]
    with suppress(Error):
        if ours.connection is not None:
            ours.connection.close()
        ours.close()
