"""The pages of one year, and of records and milestones."""

from __future__ import annotations

from typing import Final

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from accounting.history.records import LEAST_USUAL_WEEKS, read_records
from accounting.history.year import read_year
from portal.people.access import signed_in

FIRST_YEAR: Final = 1970
_SHOWN_CHARS: Final = 20


@require_safe
@login_required
def year(request: HttpRequest, number: int) -> HttpResponse:
    """What did I contribute in that year? Also for printing. A year without work says so, and links to others."""
    today = timezone.now().date()
    problem = ""
    if not FIRST_YEAR <= number <= today.year:
        message = _("%(year)s is not a year from %(first)s to %(last)s. This year is shown.")
        problem = message % {"year": str(number)[:_SHOWN_CHARS], "first": FIRST_YEAR, "last": today.year}
        number = today.year
    year_shown = read_year(signed_in(request), number, today)
    return render(
        request,
        "accounting/history_year.html",
        {"year": year_shown, "number": number, "today": today, "problem": problem},
    )


@require_safe
@login_required
def records(request: HttpRequest) -> HttpResponse:
    """My best day, my milestones, and how the last week compares."""
    today = timezone.now().date()
    best = read_records(signed_in(request), today)
    context = {"records": best, "weeks_needed": LEAST_USUAL_WEEKS + 1, "today": today}
    return render(request, "accounting/history_records.html", context)
