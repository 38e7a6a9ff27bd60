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

    eta: Any = property(lambda self: _as_local(self._eta))
    expires: Any = property(lambda self: _as_local(self._expires))


def _as_local(moment: dt.datetime | None) -> dt.datetime | None:
    return None if moment is None else clock.as_local(moment)
