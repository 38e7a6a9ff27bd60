"""The history page, and the page of one day."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_required
from django.core.paginator import Page, Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from accounting.history.charts import address, chart_data
from accounting.history.day import read_day, read_notes
from accounting.history.periods import PRESETS, Period, Step, neighbours, read_period
from accounting.history.reads import MAX_SERIES, By, History, Show, read_history
from accounting.history.sums import read_first_day
from accounting.reconciliation.card import card
from accounting.reconciliation.reads import read_reconciled
from portal.models import User
from portal.people.access import signed_in

NOTES_SHOWN: Final = 20
ROWS_A_PAGE: Final = 100

_Choice = TypeVar("_Choice", bound=StrEnum)


@require_safe
@login_required
def history(request: HttpRequest) -> HttpResponse:
    """What did I give, when, where? The page, or (for htmx) the part of it that the controls change."""
    user, today = signed_in(request), timezone.now().date()
    params = request.GET.dict()
    earliest = read_first_day(user, today) if params.get("range") == "all" else None
    period = read_period(params, today, earliest)
    show = _choice(params, "show", Show.CREDIT, period)
    by = _choice(params, "by", By.PROJECT, period)
    shown = read_history(user, period, show, by, today)
    template = _MORE_ROWS.get(request.headers.get("HX-Target", ""))
    context: dict[str, object] = {"history": shown, "today": today, **_history_tables(shown, params)}
    if template is None:
        context |= {
            "chart": chart_data(shown),
            **_settled(user, shown, today),
            "notes": read_notes(user, period.first, period.last, NOTES_SHOWN),
            **_history_controls(period, show, by, today),
        }
        is_fragment = request.headers.get("HX-Request") == "true"
        template = "accounting/_history.html" if is_fragment else "accounting/history.html"
    response = render(request, template, context)
    # One address has several answers: a cache must not serve a part as the page.
    response.headers["Vary"] = "Cookie, HX-Request, HX-Target"
    return response


# The rows that replace the "more" of a table, by its id.
_MORE_ROWS = {
    "more-days": "accounting/_history_rows.html",
    "more-groups": "accounting/_history_group_rows.html",
}


def _settled(user: User, shown: History, today: dt.date) -> dict[str, object]:
    """The card of granted and estimated credit of the same days; three statements where credit is shown."""
    if shown.show is not Show.CREDIT:
        return {}
    period = shown.period
    starts = [(start, line.title) for start, line in zip(period.starts(), shown.lines, strict=True)]
    found = read_reconciled(user, starts, (period.first, period.last), today, by_months=period.step is Step.MONTH)
    return card(found, f"Granted and estimated credit per {period.step}", per=period.step)


def _history_tables(shown: History, params: Mapping[str, str]) -> dict[str, object]:
    """A page of each table, and the addresses of the next ones."""
    period = shown.period
    lines = Paginator(shown.lines[::-1], ROWS_A_PAGE).get_page(params.get("days_page", "1"))
    # If each has a colour of its own, the legend shows the sums.
    found = shown.groups if len(shown.groups) > MAX_SERIES else []
    groups = Paginator(found, ROWS_A_PAGE).get_page(params.get("groups_page", "1"))
    # The days themselves: "the last 30 days" would be different ones tomorrow.
    here = {"from": period.first, "to": period.last, "step": period.step, "show": shown.show, "by": shown.by}
    name = {By.PROJECT: "project", By.COMPUTER: "host"}.get(shown.by, "")
    return {
        "lines": lines,
        "rows": [(line, address(shown, line)) for line in lines],
        "groups": groups,
        "group_rows": [(group, reverse(name, args=[group.key])) for group in groups],
        "first_rows_url": "?" + urlencode(here),
        "more_days_url": _next_url(here, "days_page", lines),
        "more_groups_url": _next_url(here, "groups_page", groups),
    }


def _next_url(here: Mapping[str, object], param: str, page: Page[Any]) -> str:
    """The address of the page after this one, "" after the last."""
    return "?" + urlencode({**here, param: page.next_page_number()}) if page.has_next() else ""


def _choice(params: Mapping[str, str], name: str, default: _Choice, period: Period) -> _Choice:
    """A choice from the address; for anything unknown the default, and a sentence on the page."""
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
        # The days themselves: a file of "the last 30 days" that is fetched later would have different ones.
        "download_query": urlencode({"from": period.first, "to": period.last}),
        "step_choices": [(str(step), f"{step.capitalize()}s") for step in Step],
        "show_choices": [(Show.CREDIT, "Credit"), (Show.TIME, "Run time"), (Show.JOBS, "Jobs")],
        "by_choices": [
            (By.PROJECT, "project"),
            (By.COMPUTER, "computer"),
            (By.PROCESSOR, "outcome" if show is Show.JOBS else "processor type"),
        ],
    }


@require_safe
@login_required
def day(request: HttpRequest, text: str) -> HttpResponse:
    """What did each of my computers do for each project on that day, and is there anything to know of it?"""
    user, today = signed_in(request), timezone.now().date()
    try:
        date = dt.date.fromisoformat(text)
    except ValueError:
        raise Http404 from None
    if date > today:
        raise Http404
    page = read_day(user, date, request.GET.get("page", "1"))
    is_more = request.headers.get("HX-Target") == "more-parts"
    template = "accounting/_history_day_rows.html" if is_more else "accounting/history_day.html"
    response = render(request, template, {"page": page, "today": today})
    response.headers["Vary"] = "Cookie, HX-Target"
    return response
