"""The volunteer's first pages: landing, connecting a computer, home, history."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar
from urllib.parse import urlencode

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.views.decorators.http import require_safe

from accounting.engine.paging import further, page_after
from accounting.history import reads as history_reads
from accounting.history.charts import address, chart_data
from accounting.history.day import read_notes
from accounting.history.periods import PRESETS, Period, Step, neighbours, read_period
from accounting.history.reads import By, Show
from accounting.home import reads as home_reads
from credit.statistics.exports import granted_to_user
from portal.people.access import own_hosts, signed_in

NOTES_SHOWN = 20
ROWS_A_PAGE = 100


@require_safe
def landing(request: HttpRequest) -> HttpResponse:
    """The site's front door, which BOINC clients may fetch too; whoever is signed in has a page of their own."""
    if request.user.is_authenticated:
        return redirect("home")
    return render(request, "accounting/landing.html")


@require_safe
@login_required
def connect(request: HttpRequest) -> HttpResponse:
    """How to connect a computer, and the wait for its first contact."""
    return render(request, "accounting/connect.html", _contact_since(request))


@require_safe
def connect_status(request: HttpRequest) -> HttpResponse:
    """The waiting line of the connect page: asked for again every few seconds until a computer has reported."""
    if not request.user.is_authenticated:
        # Not a redirect: the sign-in page must not be swapped into the line.
        return HttpResponse(status=403, headers={"HX-Refresh": "true"})
    return render(request, "accounting/_connect_status.html", _contact_since(request))


def _contact_since(request: HttpRequest) -> dict[str, object]:
    """The computers that reported since the page was first opened."""
    now = timezone.now()
    try:
        since = parse_datetime(request.GET.get("since", "").replace(" ", "+"))
    except ValueError:
        since = None
    if since is None or timezone.is_naive(since) or since > now:
        since = now
    # A page left open for days asks about the last one.
    since = max(since, now - dt.timedelta(days=1))
    arrived = own_hosts(signed_in(request)).filter(last_contact_at__gte=since).order_by("-last_contact_at")[:5]
    return {"section": "connect", "since": since.isoformat(), "arrived": list(arrived)}


@require_safe
@login_required
def home(request: HttpRequest) -> HttpResponse:
    """Am I contributing, and is anything wrong?"""
    user = signed_in(request)
    overview = home_reads.read_overview(user, timezone.now())
    granted = granted_to_user(user) if "project" in settings.ROOMS else None
    return render(request, "accounting/home.html", {"overview": overview, "granted": granted})


_Choice = TypeVar("_Choice", bound=StrEnum)


@require_safe
@login_required
def history(request: HttpRequest) -> HttpResponse:
    """What did I give, when, where? The page, or (for htmx) the part of it that the controls change."""
    user, today = signed_in(request), timezone.now().date()
    params = request.GET.dict()
    earliest = history_reads.read_first_day(user, today) if params.get("range") == "all" else None
    period = read_period(params, today, earliest)
    show = _choice(params, "show", Show.CREDIT, period)
    by = _choice(params, "by", By.PROJECT, period)
    shown = history_reads.read_history(user, period, show, by, today)
    template = _MORE_ROWS.get(request.headers.get("HX-Target", ""))
    tables = _history_tables(shown, params, is_more=template is not None)
    context: dict[str, object] = {"history": shown, "today": today, **tables}
    if template is None:
        context |= {
            "chart": chart_data(shown),
            "notes": read_notes(user, period.first, period.last, NOTES_SHOWN),
            **_history_controls(period, show, by, today),
        }
        is_fragment = request.headers.get("HX-Request") == "true"
        template = "accounting/_history.html" if is_fragment else "accounting/history.html"
    response = render(request, template, context)
    # One address, several answers: a cache must not hand out a part as the page.
    response.headers["Vary"] = "Cookie, HX-Request, HX-Target"
    return response


# The rows that replace the "more" of a table, by its id.
_MORE_ROWS = {
    "more-days": "accounting/_history_rows.html",
    "more-groups": "accounting/_history_group_rows.html",
}


def _history_tables(shown: history_reads.History, params: Mapping[str, str], *, is_more: bool) -> dict[str, object]:
    """A page of each table, and the addresses of the next ones. ``is_more``: to be added below what is shown."""
    period = shown.period
    lines = page_after(shown.lines[::-1], lambda line: line.place, params.get("days_after", ""), ROWS_A_PAGE)
    # Where each has a colour, the legend has the sums.
    found = shown.groups if len(shown.groups) > history_reads.MAX_SERIES else []
    groups = page_after(found, lambda group: group.place, params.get("groups_after", ""), ROWS_A_PAGE)
    if is_more:
        lines, groups = further(lines), further(groups)
    # As they are shown: "the last 30 days" would be others tomorrow.
    here = {"from": period.first, "to": period.last, "step": period.step, "show": shown.show, "by": shown.by}
    name = {By.PROJECT: "project", By.COMPUTER: "host"}.get(shown.by, "")
    return {
        "lines": lines,
        "rows": [(line, address(shown, line)) for line in lines.rows],
        "groups": groups,
        "group_rows": [(group, reverse(name, args=[group.key])) for group in groups.rows],
        "first_rows_url": "?" + urlencode(here),
        "more_days_url": "?" + urlencode(here | {"days_after": lines.after}) if lines.after else "",
        "more_groups_url": "?" + urlencode(here | {"groups_after": groups.after}) if groups.after else "",
    }


def _choice(params: Mapping[str, str], name: str, default: _Choice, period: Period) -> _Choice:
    """One of a fixed set, from the address; anything else is told on the page, and the default shown."""
    text = params.get(name, default)
    try:
        return type(default)(text)
    except ValueError:
        period.problems.append(f"“{text[:20]}” cannot be shown here. This is by {default} instead.")
        return default


def _history_controls(period: Period, show: Show, by: By, today: dt.date) -> dict[str, object]:
    """The choices of the page, each with the address that it leads to."""
    kept = {"show": show, "by": by}
    before, after = neighbours(period, today)

    def range_url(days: tuple[dt.date, dt.date] | None) -> str:
        if days is None:
            return ""
        return "?" + urlencode({"from": days[0], "to": days[1], "step": period.step, **kept})

    return {
        "presets": [
            {"name": name, "url": "?" + urlencode({"range": key, **kept}), "is_current": key == period.preset}
            for key, name in PRESETS.items()
        ],
        "before_url": range_url(before),
        "after_url": range_url(after),
        # The days as they are shown: a file of "the last 30 days" fetched later would be of others.
        "download_query": urlencode({"from": period.first, "to": period.last}),
        "step_choices": [(str(step), f"{step.capitalize()}s") for step in Step],
        "show_choices": [(Show.CREDIT, "Credit"), (Show.TIME, "Run time"), (Show.JOBS, "Jobs")],
        "by_choices": [
            (By.PROJECT, "project"),
            (By.COMPUTER, "computer"),
            (By.PROCESSOR, "outcome" if show is Show.JOBS else "processor type"),
        ],
    }
