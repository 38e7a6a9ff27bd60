"""Which computers and versions return useless results: helps operators to find a broken one."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any, Final

from django.db import connection

from credit.engine.states import Outcome, ValidateState
from credit.models import App, AppVersion
from portal.models import Host

DAYS: Final = 7
MAX_LOOKED_AT: Final = 200_000
MAX_SHOWN: Final = 100
# The newest results of a period, by the index of their reports. Locks nothing.
_COUNT: Final = f"""
WITH newest AS MATERIALIZED (
  SELECT app_id, app_version_id, host_id, outcome, validate_state FROM credit_result
   WHERE received_at > %(since)s ORDER BY received_at DESC LIMIT %(looked_at)s)
SELECT app_id, app_version_id, {{host}} AS host_id,
       count(*) FILTER (WHERE validate_state = {ValidateState.INVALID}) AS ninvalid,
       count(*) FILTER (WHERE outcome IN ({Outcome.CLIENT_ERROR}, {Outcome.VALIDATE_ERROR})) AS nerrors,
       count(*) FILTER (WHERE validate_state = {ValidateState.VALID}) AS nvalid
  FROM newest GROUP BY 1, 2, 3
HAVING count(*) FILTER (WHERE validate_state = {ValidateState.INVALID}
                        OR outcome IN ({Outcome.CLIENT_ERROR}, {Outcome.VALIDATE_ERROR})) > 0
 ORDER BY 4 DESC, 5 DESC, 1, 2, 3 LIMIT %(shown)s
"""


@dataclass(frozen=True, slots=True)
class Failures:
    """Results of a version, on one computer or (None) on all, in the last `DAYS`. ``version`` None: own programs."""

    app: App
    version: AppVersion | None
    host: Host | None
    ninvalid: int
    nerrors: int
    nvalid: int

    @property
    def share(self) -> float:
        """Return the share of the examined results that were invalid or failed."""
        return (self.ninvalid + self.nerrors) / (self.ninvalid + self.nerrors + self.nvalid)


def by_version(now: dt.datetime) -> list[Failures]:
    """List versions, those with most invalid results first."""
    return _read("NULL::bigint", now)


def by_host(now: dt.datetime) -> list[Failures]:
    """List computers and the versions that they ran, those with most invalid results first."""
    return _read("host_id", now)


def _read(host: str, now: dt.datetime) -> list[Failures]:
    values: dict[str, Any] = {"since": now - dt.timedelta(days=DAYS), "looked_at": MAX_LOOKED_AT, "shown": MAX_SHOWN}
    with connection.cursor() as cursor:
        cursor.execute(_COUNT.format(host=host), values)
        rows = cursor.fetchall()
    apps = App.objects.in_bulk({row[0] for row in rows})
    versions = AppVersion.objects.select_related("platform").in_bulk({row[1] for row in rows} - {None})
    hosts = Host.objects.in_bulk({row[2] for row in rows} - {None})
    return [
        Failures(apps[app_id], versions.get(version_id), hosts.get(host_id), *counts)
        for app_id, version_id, host_id, *counts in rows
    ]
