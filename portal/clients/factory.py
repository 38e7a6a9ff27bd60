"""Makes the event loop's application from the settings."""

from __future__ import annotations

from typing import Any, Final

from django.conf import settings
from django.core.handlers.wsgi import WSGIHandler
from django.db import close_old_connections

from portal.clients.application import ClientApplication
from portal.clients.database.batching import Batcher
from portal.clients.pages import Pages
from portal.clients.paths import with_former
from portal.databases.params import psycopg_params

# A connection keeps its plans, also those made while a table was empty. Without sequential scans rows are looked up by
# their keys, whatever the statistics said then.
OPTIONS: Final = "-c statement_timeout=30s -c lock_timeout=10s -c timezone=UTC -c enable_seqscan=off"


def make_application() -> ClientApplication:
    for route in settings.CLIENT_PATHS.values():
        route.load()
    return ClientApplication(
        with_former(settings.CLIENT_PATHS, settings.FORMER_PATHS),
        Batcher(connection_params(), close_old_connections),
        Pages(WSGIHandler(), settings.CLIENT_BODY_SECS),
        is_behind_proxy=settings.BEHIND_PROXY,
        body_secs=settings.CLIENT_BODY_SECS,
        answer_secs=settings.CLIENT_ANSWER_SECS,
        most_per_address=settings.REQUESTS_PER_ADDRESS,
    )


def connection_params() -> dict[str, Any]:
    """psycopg's parameters for the connections on which clients are answered."""
    params = psycopg_params()
    params["options"] = f"{params.get('options', '')} {OPTIONS}".strip()
    params["application_name"] = "cobblestone-clients"
    return params
