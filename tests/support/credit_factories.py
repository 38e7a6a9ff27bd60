"""Apps, versions, workunits and results for tests, each with what a test does not care about filled in."""

from __future__ import annotations

import datetime as dt
import itertools
from typing import Any

from credit.models import App, AppVersion, Outcome, Platform, Result, ServerState, ValidateState, Workunit
from portal.models import Host

NOON = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC)
_numbers = itertools.count(1)


def make_app(name: str = "alpine", **fields: Any) -> App:
    return App.objects.create(name=name, user_friendly_name=fields.pop("user_friendly_name", name.title()), **fields)


def make_version(app: App, version_num: int = 100, platform: str = "x86_64-pc-linux-gnu", **fields: Any) -> AppVersion:
    return AppVersion.objects.create(
        app=app, platform=Platform.objects.get_or_create(name=platform)[0], version_num=version_num, **fields
    )


def make_workunit(app: App, **fields: Any) -> Workunit:
    fields = {"name": f"wu_{next(_numbers)}", "fpops_est": 1e13, "fpops_bound": 1e15, **fields}
    return Workunit.objects.create(app=app, **fields)


def make_result(workunit: Workunit, host: Host | None = None, **fields: Any) -> Result:
    """Unsent without a host, else sent an hour before `NOON` and in progress, unless fields say otherwise."""
    number = workunit.results.count()
    sent: dict[str, Any] = {}
    if host is not None:
        sent = {
            "host": host,
            "user_id": host.owner_id,
            "server_state": ServerState.IN_PROGRESS,
            "sent_at": NOON - dt.timedelta(hours=1),
            "deadline_at": NOON + dt.timedelta(days=6),
            "peak_flops": 4e9,
        }
    return Result.objects.create(
        workunit=workunit, app=workunit.app, **{"name": f"{workunit.name}_{number}", **sent, **fields}
    )


def make_success(workunit: Workunit, host: Host, **fields: Any) -> Result:
    """A result that was reported at `NOON` after 50 minutes of work, and not validated yet."""
    reported = {
        "server_state": ServerState.OVER,
        "outcome": Outcome.SUCCESS,
        "validate_state": ValidateState.INIT,
        "received_at": NOON,
        "elapsed_secs": 3000.0,
        "cpu_secs": 2900.0,
        "exit_status": 0,
        "output_digest": b"o" * 16,
    }
    return make_result(workunit, host, **{**reported, **fields})
