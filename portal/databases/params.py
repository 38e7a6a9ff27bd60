"""How this process connects to its database without Django."""

from __future__ import annotations

from typing import Any

from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper


def psycopg_params(database: BaseDatabaseWrapper | None = None) -> dict[str, Any]:
    """psycopg's parameters for a database of Django's, without Django's own settings: pool, cursors, adapters.

    Django's prepare_threshold is left out, too: it is None, so psycopg would prepare no statement, even on request.
    """
    params = (database or connection).get_connection_params()
    for djangos in ("pool", "context", "cursor_factory", "prepare_threshold"):
        params.pop(djangos, None)
    return params
