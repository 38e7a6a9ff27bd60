"""What the public status says of a project, in the words of BOINC's server_status.php. Nothing of a person's."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Final

from django.db import connection

from credit.figures import sql
from credit.figures.names import app_names
from credit.models import App
from portal.dashboard import registry
from portal.dashboard.registry import Daemon, Sample, Source

DAEMONS: Final = (
    Daemon("validator", "credit.tasks.start_validators"),
    Daemon("feeder", "credit.tasks.feed"),
)
_PER_GFLOPS: Final = 200
"""Credits a day of one GFLOPS."""


def take(now: dt.datetime) -> Iterator[Sample]:
    with connection.cursor() as cursor:
        for owners, table in (("users", "credit_usercredit"), ("hosts", "credit_hostcredit")):
            cursor.execute(sql.CREDITED.format(table=table), {"now": now})
            total, recent, daily = cursor.fetchone()
            yield Sample(f"status.{owners}_with_credit", total)
            yield Sample(f"status.{owners}_with_recent_credit", recent)
            if owners == "users":
                yield Sample("status.current_floating_point_speed", float(daily) / _PER_GFLOPS)
        cursor.execute(sql.RESULTS_TO_DELETE)
        yield Sample("status.results_waiting_for_deletion", cursor.fetchone()[0])


def take_tables(now: dt.datetime) -> dict[str, list[list[object]]]:
    """Apps: number, names, and of the newest results of a day the run time (h: mean, least, most) and volunteers."""
    with connection.cursor() as cursor:
        cursor.execute(sql.RUN_TIMES, {"now": now})
        found = {app: [round(secs or 0, 2) for secs in times] + [users] for app, *times, users in cursor.fetchall()}
    names = app_names()
    apps = App.objects.filter(is_deprecated=False).order_by("pk")
    return {"status.apps": [[app.pk, app.name, names[app.pk], *found.get(app.pk, [0.0, 0.0, 0.0, 0])] for app in apps]}


def register() -> None:
    """Called once, when the app is ready, if the site has a project."""
    registry.daemons.extend(DAEMONS)
    registry.add_source(Source("status", (), take, (), take_tables))
