"""The parts of the event loop's application, put together from the settings."""

from __future__ import annotations

from typing import Any, Final

from django.conf import settings
from django.core.handlers.wsgi import WSGIHandler
from django.db import close_old_connections, connection

from portal.clients.application import ClientApplication
from portal.clients.batching import Batching
from portal.clients.pages import Pages

# Rows are looked up by their keys, whatever statistics say: a plan is kept as long as its connection, also one that was
# made while a table was empty.
OPTIONS: Final = "-c statement_timeout=30s -c lock_timeout=10s -c timezone=UTC -c enable_seqscan=off"


def make_application() -> ClientApplication:
    for route in settings.CLIENT_PATHS.values():
        route.load()
    return ClientApplication(
        settings.CLIENT_PATHS,
        Batching(connection_params(), close_old_connections),
        Pages(WSGIHandler(), settings.CLIENT_BODY_SECS),
        is_behind_proxy=settings.BEHIND_PROXY,
        body_secs=settings.CLIENT_BODY_SECS,
        answer_secs=settings.CLIENT_ANSWER_SECS,
    )


def connection_params() -> dict[str, Any]:
    """psycopg's own for Django's database: without its pool, cursors and adapters."""
    params = connection.get_connection_params()
    for djangos in ("pool", "context", "cursor_factory"):
        params.pop(djangos, None)
    params["options"] = f"{params.get('options', '')} {OPTIONS}".strip()
    params["prepare_threshold"] = 0  # Django's None would have nothing prepared at all
    params["application_name"] = "cobblestone-clients"
    return params
