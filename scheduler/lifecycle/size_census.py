"""The census of size classes: the speeds of each app's computers, which decide which of its jobs they get first.

Locks the apps' rows one at a time.
"""

from __future__ import annotations

import datetime as dt
from typing import Final

import structlog
from django.db import connection

from credit.models import App, ProcessorType
from scheduler.engine.choice.sizes import take_census

log = structlog.get_logger(__name__)
ACTIVE_DAYS: Final = 30
"""Computers that asked for work within this time are counted."""

# The FLOPS of each computer with its fastest version of an app, from its run times and the share of the time that it
# computes. Locks nothing.
_SPEEDS: Final = f"""
SELECT max(CASE v.processor_type WHEN '{ProcessorType.CPU}' THEN s.active_frac ELSE s.gpu_active_frac END
           * s.on_frac / v.et_avg)
  FROM credit_hostappversion v JOIN scheduler_hostrecord s ON s.host_id = v.host_id
 WHERE v.app_id = %(app)s AND v.et_n > 0 AND v.et_avg > 0 AND s.last_rpc_at > %(since)s
 GROUP BY v.host_id
"""


def run(now: dt.datetime) -> None:
    """Recompute the limits between each app's size classes from its computers' current speeds."""
    for app in App.objects.filter(n_size_classes__gt=1, is_deprecated=False):
        with connection.cursor() as cursor:
            cursor.execute(_SPEEDS, {"app": app.pk, "since": now - dt.timedelta(days=ACTIVE_DAYS)})
            census = take_census([speed for (speed,) in cursor.fetchall()], app.n_size_classes)
        App.objects.filter(pk=app.pk).update(size_limits=census.limits, size_nhosts=census.nhosts)
        log.info("size_census", app=app.name, hosts=sum(census.nhosts), limits=census.limits)
