"""The public status: a page for people, and XML in the form of BOINC's server_status.php for programs.

Both show the figures that were taken last, cached for a minute; nothing in them is about a person.
"""

from __future__ import annotations

import datetime as dt
from typing import Any, Final
from urllib.parse import urlsplit
from xml.sax.saxutils import escape

from django.conf import settings
from django.core.cache import cache
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_safe

from portal.dashboard import sql
from portal.dashboard.reads import STALE
from portal.models import OperatingTable

CACHED_SECS: Final = 60
_KEY: Final = "portal:status"
# BOINC's names, in its order, and the figures that they stand for, or are the sum of.
FIGURES: Final = {
    "results_ready_to_send": "jobs.unsent",
    "results_in_progress": "jobs.in_progress",
    "workunits_waiting_for_validation": "jobs.to_validate",
    "workunits_waiting_for_assimilation": "jobs.to_assimilate",
    "workunits_waiting_for_deletion": "jobs.to_delete",
    "results_waiting_for_deletion": "status.results_waiting_for_deletion",
    "transitioner_backlog_hours": "jobs.to_transition_oldest",
    "users_with_recent_credit": "status.users_with_recent_credit",
    "users_with_credit": "status.users_with_credit",
    "users_registered_in_past_24_hours": "status.users_registered_in_past_24_hours",
    "hosts_with_recent_credit": "status.hosts_with_recent_credit",
    "hosts_with_credit": "status.hosts_with_credit",
    "hosts_registered_in_past_24_hours": "status.hosts_registered_in_past_24_hours",
    "current_floating_point_speed": "status.current_floating_point_speed",
}
_COUNTS: Final = {
    "results_ready_to_send": "results_ready_to_send",
    "results_in_progress": "results_in_progress",
    "results_need_file_delete": "results_waiting_for_deletion",
    "wus_need_validate": "workunits_waiting_for_validation",
    "wus_need_assimilate": "workunits_waiting_for_assimilation",
    "wus_need_file_delete": "workunits_waiting_for_deletion",
}
_DECIMAL: Final = ("transitioner_backlog_hours", "current_floating_point_speed")


def current() -> dict[str, Any]:
    """The status as plain values, at most a minute old, from two statements."""
    status: dict[str, Any] | None = cache.get(_KEY)
    if status is None:
        status = _read(timezone.now())
        cache.set(_KEY, status, timeout=CACHED_SECS)
    return status


def _read(now: dt.datetime) -> dict[str, Any]:
    latest: dict[tuple[str, str], tuple[float, float]] = {}
    with connection.cursor() as cursor:
        cursor.execute(sql.LATEST, {"since": now - dt.timedelta(hours=6), "now": now})
        for name, label, at, value in cursor.fetchall():
            latest[name, label] = at, value
    taken_at = max((at for at, _ in latest.values()), default=0.0)
    newest: dict[str, float] = {}
    for (name, _), (at, _) in latest.items():
        newest[name] = max(at, newest.get(name, 0.0))
    # Values of a figure are taken together: a label that is no longer taken belongs to something that is gone.
    latest = {key: (at, value) for key, (at, value) in latest.items() if at == newest[key[0]]}
    sums: dict[str, float] = {}
    for (name, _), (_, value) in latest.items():
        sums[name] = sums.get(name, 0) + value
    tables = OperatingTable.objects.in_bulk(["status.apps", "status.daemons"])
    is_stale = now.timestamp() - taken_at > STALE.total_seconds()
    states = {tag: sums.get(figure, 0) for tag, figure in FIGURES.items()}
    states["transitioner_backlog_hours"] /= 3600
    apps = tables["status.apps"].rows if "status.apps" in tables else []
    daemons = tables["status.daemons"].rows if "status.daemons" in tables else []
    return {
        "taken_at": taken_at,
        "is_stale": is_stale,
        "states": {tag: value if tag in _DECIMAL else round(value) for tag, value in states.items()},
        "apps": [app for row in apps if (app := _app(row, latest)) is not None],
        # Old figures mean that nothing works in the background.
        "daemons": [[command, runs and not is_stale] for command, runs in daemons],
        "active": {within: round(latest.get(("am.active", within), (0, 0))[1]) for within in ("day", "week", "month")},
    }


def _app(row: list[Any], latest: dict[tuple[str, str], tuple[float, float]]) -> dict[str, Any] | None:
    """An app as BOINC's elements describe it, without the title; run times are in hours.

    None for a withdrawn app without tasks. Tasks of the others are in the sums, so these are listed.
    """
    id_, name, title, average, least, most, users, is_withdrawn = row
    unsent, in_progress = (
        round(latest.get((figure, title), (0, 0))[1]) for figure in ("jobs.unsent", "jobs.in_progress")
    )
    if is_withdrawn and not unsent and not in_progress:
        return None
    return {
        "id": id_,
        "name": name,
        "title": title,
        "unsent": unsent,
        "in_progress": in_progress,
        "avg_runtime": average,
        "min_runtime": least,
        "max_runtime": most,
        "users": users,
    }


@require_safe
def status(request: HttpRequest) -> HttpResponse:
    """The page for people."""
    figures = current()
    taken_at = dt.datetime.fromtimestamp(figures["taken_at"], dt.UTC) if figures["taken_at"] else None
    rooms = {"has_project": "project" in settings.ROOMS, "has_manager": "account_manager" in settings.ROOMS}
    facts = {
        "taken_at": taken_at,
        "is_whole": all(runs for _, runs in figures["daemons"]),
        "backlog_secs": figures["states"]["transitioner_backlog_hours"] * 3600,
        "speed_flops": figures["states"]["current_floating_point_speed"] * 1e9,
    }
    return render(request, "portal/status.html", {**figures, **facts, **rooms})


@csrf_exempt
@require_http_methods(["GET", "HEAD", "POST"])
def server_status(request: HttpRequest) -> HttpResponse:
    """Answer at BOINC's address: XML for programs that ask for it, else the page. Some ask for counts with POST."""
    given = [name for name in ("counts", "xml") if request.GET.get(name, "0") not in ("", "0")]
    if not given:
        return redirect("status")
    write = counts if "counts" in given else xml
    response = HttpResponse(write(current()), content_type="text/xml; charset=ISO-8859-1")
    response.headers["Cache-Control"] = f"public, max-age={CACHED_SECS}"
    return response


def counts(figures: dict[str, Any]) -> bytes:
    """The numbers of jobs alone, in the form that programs which submit jobs read."""
    items = {tag: figures["states"][state] for tag, state in _COUNTS.items()}
    return "\n".join(["<job_counts>", *_items(**items), "</job_counts>", ""]).encode()


def xml(figures: dict[str, Any]) -> bytes:
    """The status in the form of BOINC's html/user/server_status.php; characters beyond ASCII are references."""
    host = urlsplit(settings.SITE_URL).hostname or ""
    lines = ['<?xml version="1.0" encoding="ISO-8859-1" ?>', "<server_status>", "<daemon_status>"]
    for command, runs in figures["daemons"]:
        lines += ["  <daemon>", *_items(host=host, command=command, status="running" if runs else "not running")]
        lines.append("  </daemon>")
    lines += ["</daemon_status>", "<database_file_states>", *_items(**figures["states"]), "<tasks_by_app>"]
    for app in figures["apps"]:
        elements = {key: value for key, value in app.items() if key != "title"}
        lines += ["<app>", *_items(**elements), "</app>"]
    lines += ["</tasks_by_app>", "</database_file_states>", "</server_status>", ""]
    return "\n".join(lines).encode("ascii", "xmlcharrefreplace")


def _items(**values: str | float) -> list[str]:
    return [f"   <{tag}>{_text(value)}</{tag}>" for tag, value in values.items()]


def _text(value: str | float) -> str:
    if isinstance(value, str):
        return escape(value)
    return f"{value:.6f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
