"""Celery's messages by the site's time: a machine whose clock is wrong drops none, and does none at another time."""

from __future__ import annotations

import datetime as dt
from typing import Any

from celery.worker.request import Request

from portal.databases import clock


class SiteRequest(Request):
    """A message that a worker has got. Celery compares these two with the machine's own clock."""

    _eta: Any
    _expires: Any

    @property
    def eta(self) -> Any:
        return _as_local(self._eta)

    @property  # type: ignore[misc]  # the stubs have an attribute that can be set; Celery only reads it
    def expires(self) -> Any:
        return _as_local(self._expires)


def _as_local(moment: dt.datetime | None) -> dt.datetime | None:
    return None if moment is None else clock.as_local(moment)
