"""Statements around a measurement, and separate connections for measurements in threads."""

from __future__ import annotations

from typing import Any

import psycopg
from django.db import connection
from psycopg import Connection

from portal.databases.params import psycopg_params


def execute(*statements: str, **params: Any) -> int:
    """Execute each with these parameters; return the number of rows of the last."""
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement, params or None)
        count: int = cursor.rowcount
    return count


def own_connection() -> Connection[Any]:
    """Return a connection to this database that prepares statements at once."""
    return psycopg.connect(**psycopg_params(), prepare_threshold=0)
