"""The site as a WSGI application, with a short way to what BOINC clients ask.

Django's handler asks every middleware, sends signals at both ends of a request and hands on a reply as a stream. For a
client's request, whose middleware is the first one alone, that costs more than reading the request does. So the paths
of settings.PROTOCOLS go from here to that middleware, which answers, counts and logs them as it does when the long way
is taken (`portal.middleware.ProtocolMiddleware`), and all that the signals do for them is done here: Django's database
connections are given back.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any, cast

from django.core.handlers.exception import convert_exception_to_response
from django.core.handlers.wsgi import WSGIHandler, WSGIRequest
from django.db import close_old_connections, connection, connections
from django.db.backends.signals import connection_created
from django.dispatch import receiver

from portal.middleware import Handler, ProtocolMiddleware, rules_of_protocols

StartResponse = Callable[..., Any]


class _Thread(threading.local):
    """Whether Django has connected this thread to the database: asking its connections costs as much as a log line."""

    has_connected = False


_thread = _Thread()


@receiver(connection_created)
def _note_connection(**_: object) -> None:
    _thread.has_connected = True


class SiteHandler:
    """Django's handler for everything but BOINC clients' requests."""

    def __init__(self) -> None:
        self.django = WSGIHandler()
        protocols = ProtocolMiddleware(cast("Handler", self.django.get_response))
        # What the middleware itself fails with is logged and answered as on the long way.
        self.protocols = cast("Handler", convert_exception_to_response(protocols))

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        path = environ.get("PATH_INFO")
        # Below a prefix, URLs need the prefix that only Django's handler sets.
        rules = rules_of_protocols()
        if path not in rules.roots or path in rules.streams or environ.get("SCRIPT_NAME"):
            return cast("Iterable[bytes]", self.django(environ, start_response))
        try:
            response = self.protocols(WSGIRequest(environ))
            start_response(f"{response.status_code} {response.reason_phrase}", list(response.items()))
            # A list is sent as it is; for anything else granian comes back for each part.
            return [response.content]
        finally:
            # A connection whose set-up failed halfway is there without the signal.
            if _thread.has_connected or connection.connection is not None:
                close_old_connections()
                _thread.has_connected = any(each.connection for each in connections.all(initialized_only=True))
