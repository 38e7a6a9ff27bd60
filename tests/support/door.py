"""The site with a door that only tests have, so that many of them share one: they change its settings while it runs.

`tests.support.site_process` starts it in place of `portal.asgi`. A POST to DOOR has the environment variables that
differ from those it was started with. The settings are then those of a site that was started with them, and what was
read before is forgotten. Settings that are read once, at the start, stay.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Final

import orjson
from django.test import override_settings

from portal.asgi import application as site

# After the site, which sets Django up
from accounting.rpc import catalogue as projects  # isort: skip
from scheduler.programs import catalogue as programs  # isort: skip
from tests.support.settings_of import settings_of  # isort: skip
from tests.support.site_process import DOOR  # isort: skip

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class _Door:
    def __init__(self) -> None:
        self._started_with = settings_of(os.environ)
        self._changed: override_settings | None = None

    def set(self, variables: Mapping[str, str]) -> None:
        if self._changed is not None:
            self._changed.disable()
            self._changed = None
        if variables:
            wanted = settings_of({**os.environ, **variables})
            changed = {name: value for name, value in wanted.items() if value != self._started_with.get(name)}
            self._changed = override_settings(**changed)
            self._changed.enable()
        projects.forget()
        programs.forget()


_door: Final = _Door()


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] != "http" or scope["path"] != DOOR:
        await site(scope, receive, send)
        return
    body = b""
    while (event := await receive())["type"] == "http.request":
        body += event["body"]
        if not event.get("more_body"):
            break
    _door.set(orjson.loads(body))
    with suppress(ConnectionError):
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})
