"""Pages and downloads that the history leads to: one day in full, and the rows of a range."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import replace

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from accounting.engine.paging import further
from accounting.exchange import exports
from accounting.exchange.day_rows import Wanted, read_names, read_pages
from accounting.history.day import read_day
from accounting.history.periods import read_period
from accounting.history.reads import read_first_day
from portal.people.access import signed_in

_TYPES = {"csv": "text/csv; charset=utf-8", "json": "application/json"}


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
    page = read_day(user, date, request.GET.get("after", ""))
    is_more = request.headers.get("HX-Target") == "more-parts"
    template = "accounting/history_day.html"
    if is_more:
        template, page = "accounting/_history_day_rows.html", replace(page, parts=further(page.parts))
    response = render(request, template, {"page": page, "today": today})
    response.headers["Vary"] = "Cookie, HX-Target"
    return response


@require_safe
@login_required
def download(request: HttpRequest, kind: str) -> HttpResponseBase:
    """All rows of a range, as the history page's address names it."""
    user, today = signed_in(request), timezone.now().date()
    params = {name: value for name, value in request.GET.dict().items() if name in ("range", "from", "to")}
    earliest = read_first_day(user, today) if params.get("range") == "all" else None
    period = read_period(params, today, earliest)
    if period.problems:
        # A file of another range than was asked for would be taken for the right one.
        return HttpResponse(" ".join(period.problems) + "\n", status=400, content_type="text/plain; charset=utf-8")
    wanted = Wanted(period.first, period.last)
    names = read_names(user)
    pages = read_pages(user, wanted)
    body: Iterator[bytes] = exports.as_csv(pages, names) if kind == "csv" else exports.as_json(pages, names, wanted)
    name = f"history-{period.first}-to-{period.last}.{kind}"
    return StreamingHttpResponse(
        body,
        content_type=_TYPES[kind],
        headers={"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "private, no-store"},
    )
