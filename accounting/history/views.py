"""The history page, and the page of one day."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_required
from django.core.paginator import Page, Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from accounting.history import texts
from accounting.history.charts import address, chart_data
from accounting.history.choices import PAGE_PARAMETERS, PROCESSORS, Choices, Scale, read_choices
from accounting.history.compared import Compare, Comparison, Overlay, read_comparison
from accounting.history.day import read_day, read_notes
from accounting.history.periods import Period, Step, neighbours, read_period
from accounting.history.reads import MAX_SERIES, By, History, Show, read_history
from accounting.history.sums import read_first_day
from accounting.ledger.rollup import average_of
from accounting.models import UserProject
from accounting.reconciliation.card import card
from accounting.reconciliation.reads import read_reconciled
from portal.models import User
from portal.people.access import signed_in
from portal.templatetags.display import amount, count
from portal.templatetags.display import day as day_text
from portal.web.parameters import unknown_parameters

NOTES_SHOWN: Final = 20
ROWS_A_PAGE: Final = 100
# Per cent; longer steps read better as factors.
_TIMES_FROM: Final = 900
_SHOWN_CHARS: Final = 20


@require_safe
@login_required
def history(request: HttpRequest) -> HttpResponse:
    """What did I contribute, when and where? The page or, for htmx, the part that the controls change."""
    user, today = signed_in(request), timezone.now().date()
    params = request.GET.dict()
    earliest = read_first_day(user, today) if params.get("range") == "all" else None
    period = read_period(params, today, earliest)
    choices = read_choices(user, params, period)
    history = read_history(user, period, choices.show, choices.by, today, choices.only)
    beside = read_comparison(user, history, choices.compare, choices.curve, choices.only)
    template = _MORE_ROWS.get(request.headers.get("HX-Target", ""))
    context: dict[str, object] = {
        "history": history, "beside": beside, "choices": choices, "today": today,
        "words": texts.words(period, history.by), **_history_tables(history, beside, choices, params),
    }  # fmt: skip
    if template is None:
        context |= {
            "problems": [
                *unknown_parameters(params, PAGE_PARAMETERS),
                *(texts.problem_text(problem) for problem in period.problems),
                *choices.problems,
            ],
            "chart": chart_data(history, choices, beside),
            "compared": _compared(history, beside),
            **_settled(user, history, choices, today),
            "recent_average": _recent_average(user, choices),
            "notes": read_notes(user, period.first, period.last, choices.only, NOTES_SHOWN),
            **_history_controls(period, choices, today),
        }
        is_fragment = request.headers.get("HX-Request") == "true"
        template = "accounting/_history.html" if is_fragment else "accounting/history.html"
    response = render(request, template, context)
    # One address has several answers: a cache must not serve a fragment as the page.
    response.headers["Vary"] = "Cookie, HX-Request, HX-Target"
    return response


# The rows that replace the "more" of a table, by its id.
_MORE_ROWS = {
    "more-days": "accounting/_history_rows.html",
    "more-groups": "accounting/_history_group_rows.html",
}


def _settled(user: User, history: History, choices: Choices, today: dt.date) -> dict[str, object]:
    """Return the card of granted and estimated credit of the same days, where credit is shown.

    Projects do not say on which processors they grant. For an app, all credit shown is granted.
    """
    if history.show is not Show.CREDIT or choices.only.processor is not None or choices.only.app_id is not None:
        return {}
    period = history.period
    starts = [(start, line.title) for start, line in zip(period.starts(), history.lines, strict=True)]
    settled = read_reconciled(
        user,
        starts,
        (period.first, period.last),
        today,
        host_id=choices.only.host_id,
        project_id=choices.only.project_id,
        by_months=period.step is Step.MONTH,
    )
    return card(settled, gettext(texts.SETTLED_TITLES[period.step]), per=period.step)


def _recent_average(user: User, choices: Choices) -> float | None:
    """Return the average as of now, of all projects or one; None where credit is not shown, or for a part without an
    average.
    """
    only = choices.only
    if choices.show is not Show.CREDIT or any((only.host_id, only.processor, only.app_id)):
        return None
    rows = UserProject.objects.filter(user=user, avg_ec__gt=0)
    if only.project_id is not None:
        rows = rows.filter(project=only.project_id)
    now = timezone.now()
    return sum(average_of(row, now) for row in rows)


def _history_tables(
    history: History, beside: Comparison, choices: Choices, params: Mapping[str, str]
) -> dict[str, object]:
    """Build a page of each table, and the addresses of the next ones."""
    period = history.period
    columns = _extra_columns(beside)
    # The other range may have one step fewer.
    extra = {
        line.start: [values[place] if place < len(values) else None for _, values, _ in columns]
        for place, line in enumerate(history.lines)
    }
    lines = Paginator(history.lines[::-1], ROWS_A_PAGE).get_page(params.get("days_page", "1"))
    # If each has its own colour, the legend shows the sums.
    shown_groups = history.groups if len(history.groups) > MAX_SERIES else []
    groups = Paginator(shown_groups, ROWS_A_PAGE).get_page(params.get("groups_page", "1"))
    # Explicit days: "the last 30 days" would be different ones tomorrow.
    here = {"from": period.first, "to": period.last, "step": period.step, **choices.query}
    name = {By.PROJECT: "project", By.COMPUTER: "host"}.get(history.by, "")
    return {
        "lines": lines,
        "rows": [(line, address(history, line, choices), extra[line.start]) for line in lines],
        "extra_columns": [(name, total) for name, _, total in columns],
        "ncolumns": len(history.series) + len(columns) + 8,
        "groups": groups,
        "group_rows": [(group, reverse(name, args=[group.key])) for group in groups],
        "first_rows_url": "?" + urlencode(here),
        "more_days_url": _next_url(here, "days_page", lines),
        "more_groups_url": _next_url(here, "groups_page", groups),
    }


def _extra_columns(beside: Comparison) -> list[tuple[str, list[int], int | None]]:
    """Return the columns beside the amounts in the table: name, a value for each line, and their sum if meaningful."""
    columns: list[tuple[str, list[int], int | None]] = []
    if beside.first is not None:
        columns.append((texts.range_text(beside.first, beside.last), beside.other, beside.other_total))
    if beside.means:
        columns.append((gettext("7-day average"), beside.means, None))
    if beside.running:
        columns.append((gettext("Running total"), beside.running, None))
    return columns


def _compared(history: History, beside: Comparison) -> str:
    """Describe the other range in a sentence; empty without one."""
    if beside.first is None:
        return ""
    other = texts.range_text(beside.first, beside.last)
    return f"{other}: {amount(beside.other_total, history.show)}. {_more(history, beside)}".strip()


def _more(history: History, beside: Comparison) -> str:
    """Return how much more it is than the other range; empty if that has nothing."""
    change = beside.change(history.total)
    if change is None:
        return ""
    if change >= _TIMES_FROM:
        return gettext("This range has %(factor)s times as much.") % {
            "factor": count(round(history.total / beside.other_total))
        }
    text = (
        gettext("This range has %(percent)s %% less.") if change < 0 else gettext("This range has %(percent)s %% more.")
    )
    return text % {"percent": abs(change)}


def _next_url(here: Mapping[str, object], param: str, page: Page[Any]) -> str:
    """Return the address of the page after this one, "" after the last."""
    return "?" + urlencode({**here, param: page.next_page_number()}) if page.has_next() else ""


def _range_query(period: Period) -> dict[str, object]:
    """Return the range, as the address of the page names it."""
    if period.preset:
        return {"range": period.preset, "step": period.step}
    return {"from": period.first, "to": period.last, "step": period.step}


def _history_controls(period: Period, choices: Choices, today: dt.date) -> dict[str, object]:
    """Build the page's controls, each option with its address."""
    query = choices.query
    before, after = neighbours(period, today)

    def range_url(days: tuple[dt.date, dt.date] | None) -> str:
        if days is None:
            return ""
        return "?" + urlencode({"from": days[0], "to": days[1], "step": period.step, **query})

    return {
        "presets": [
            {"name": gettext(name), "url": "?" + urlencode({"range": key, **query}), "is_current": key == period.preset}
            for key, name in texts.PRESETS.items()
        ],
        "before_url": range_url(before),
        "after_url": range_url(after),
        # Explicit days: a file of "the last 30 days" that is fetched later would have different ones.
        "download_query": urlencode({"from": period.first, "to": period.last, **choices.filters}),
        "step_choices": [(str(step), gettext(name)) for step, name in texts.STEP_CHOICES.items()],
        "show_choices": [(show, gettext(name)) for show, name in texts.SHOWN.items()],
        "by_choices": [
            (By.PROJECT, gettext("project")),
            (By.COMPUTER, gettext("computer")),
            (By.PROCESSOR, gettext("outcome") if choices.show is Show.JOBS else gettext("processor type")),
        ],
        "kept": query.items(),
        "all_url": "?"
        + urlencode({**_range_query(period), **{name: query[name] for name in query if name not in choices.filters}}),
        "compare_choices": [
            (Compare.NOTHING, gettext("nothing")),
            (Compare.BEFORE, gettext(texts.BEFORE[period.step])),
            (Compare.YEAR, gettext("a year before")),
        ],
        "curve_choices": [
            (Overlay.EACH, gettext(texts.EACH[period.step])),
            *([(Overlay.MEAN, gettext("7-day average"))] if period.step is Step.DAY else []),
            (Overlay.TOTAL, gettext("running total")),
        ],
        "scale_choices": [
            (Scale.LINEAR, gettext("linear")),
            (Scale.ROOT, gettext("square root")),
            (Scale.LOG, gettext("logarithmic")),
        ],
        "processor_choices": [(processor, gettext(name)) for processor, name in PROCESSORS.items()],
    }


@require_safe
@login_required
def day(request: HttpRequest, text: str) -> HttpResponse:
    """What did each of my computers do for each project on that day, and is there anything to note?"""
    user, today = signed_in(request), timezone.now().date()
    date, problem = _read_day(text, today)
    page = read_day(user, date, request.GET.get("page", "1"))
    is_more = request.headers.get("HX-Target") == "more-parts"
    template = "accounting/_history_day_rows.html" if is_more else "accounting/history_day.html"
    response = render(request, template, {"page": page, "today": today, "problem": problem})
    response.headers["Vary"] = "Cookie, HX-Target"
    return response


def _read_day(text: str, today: dt.date) -> tuple[dt.date, str]:
    """Read the day of an address; today, with the reason, if there is no such day to show."""
    try:
        date = dt.date.fromisoformat(text)
    except ValueError:
        message = gettext("“%(text)s” is not a day, such as %(today)s. Today is shown.")
        return today, message % {"text": text[:_SHOWN_CHARS], "today": today}
    if date > today:
        return today, gettext("%(day)s has not come yet. Today is shown.") % {"day": day_text(date)}
    return date, ""
