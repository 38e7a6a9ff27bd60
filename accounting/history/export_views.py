"""Downloads of a range of days: sent at once if short, else made by a worker and downloaded from a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import urlencode

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_POST, require_safe

from accounting.exchange import downloads, exports, made_files
from accounting.exchange.day_rows import DayRange, read_names, read_pages
from accounting.history.choices import PART_PARAMETERS, RANGE_PARAMETERS, read_filter
from accounting.history.periods import read_period
from accounting.history.sums import read_first_day
from accounting.history.texts import refusal_text
from accounting.models import DataCopy
from portal.models import User
from portal.people.access import signed_in
from portal.web.parameters import unknown_parameters

_PARAMETERS: Final = (*RANGE_PARAMETERS, *PART_PARAMETERS)
_TYPES: Final = {"csv": "text/csv; charset=utf-8", "json": "application/json"}


@require_safe
@login_required
def download(request: HttpRequest, kind: str) -> HttpResponseBase:
    """Send all rows of a range, or of a part of its work, as the history page's address names them."""
    user = signed_in(request)
    day_range, problems = _read_range(user, request.GET.dict(), _PARAMETERS)
    if problems:
        # A file with other content would be mistaken for the one requested.
        return _refused(problems)
    if exports.is_large(user, day_range):
        query = {"kind": kind, **_fields(day_range)}
        return redirect(f"{reverse('history_files')}?{urlencode(query)}")
    names = read_names(user, day_range)
    pages = read_pages(user, day_range)
    body: Iterator[bytes] = (
        downloads.as_csv(pages, names) if kind == "csv" else downloads.as_json(pages, names, day_range)
    )
    name = exports.file_name(day_range, kind)
    return StreamingHttpResponse(
        body,
        content_type=_TYPES[kind],
        headers={"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "private, no-store"},
    )


@require_safe
@login_required
def files(request: HttpRequest) -> HttpResponse:
    """Show finished and unfinished files; the range in the address can be requested."""
    user, params = signed_in(request), request.GET.dict()
    is_fragment = request.headers.get("HX-Request") == "true"
    exported = exports.read(user)
    context: dict[str, object] = {
        "files": exported,
        "is_waiting": any(copy.state in made_files.UNFINISHED for copy, _ in exported),
        "kept_days": made_files.KEPT.days,
        "most_kept": exports.MAX_KEPT,
        "most_running": settings.REQUESTED_WORK_PER_PERSON,
        "most_rows": settings.HISTORY_DOWNLOAD_ROWS,
    }
    if not is_fragment and params:
        day_range, problems = _read_file_request(user, params)
        if problems:
            return _refused(problems)
        context["requested"] = {"kind": params["kind"], "first": day_range.first, "last": day_range.last}
        context["fields"] = _fields(day_range).items()
        context["is_part"] = len(_fields(day_range)) > 2
    template = "accounting/_history_files.html" if is_fragment else "accounting/history_files.html"
    response = render(request, template, context)
    response.headers["Vary"] = "Cookie, HX-Request"
    return response


@require_POST
@login_required
def make(request: HttpRequest) -> HttpResponse:
    """Have a file made."""
    user = signed_in(request)
    params = {name: text for name, text in request.POST.dict().items() if name != "csrfmiddlewaretoken"}
    day_range, problems = _read_file_request(user, params)
    if problems:
        return _refused(problems)
    try:
        exports.ask(user, DataCopy.Content(params["kind"]), day_range)
    except exports.TooManyAtOnce:
        messages.error(
            request,
            gettext("%(number)s files are already being made for you. Request another one when one of them is ready.")
            % {"number": exports.MAX_KEPT},
        )
    return redirect("history_files")


@require_safe
@login_required
def download_made(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Send a finished file."""
    copy = exports.find_ready(signed_in(request), pk)
    if copy is None:
        raise Http404
    return made_files.sent(copy, exports.file_name(made_files.range_of(copy), f"{copy.content}.zip"))


def _read_range(user: User, params: Mapping[str, str], parameters: Sequence[str]) -> tuple[DayRange, list[str]]:
    """Read the days and the filter that an address names, and what of it is unavailable; ``known``: the allowed
    parameters.
    """
    today = timezone.now().date()
    named = {name: value for name, value in params.items() if name in RANGE_PARAMETERS}
    earliest = read_first_day(user, today) if named.get("range") == "all" else None
    period = read_period(named, today, earliest)
    problems = unknown_parameters(params, parameters) + [refusal_text(problem) for problem in period.problems]
    only = read_filter(user, params, problems)
    return DayRange(period.first, period.last, only.project_id, only.host_id, only.processor, only.app_id), problems


def _read_file_request(user: User, params: Mapping[str, str]) -> tuple[DayRange, list[str]]:
    """Read the rows and the kind of file requested, and what is wrong with the request."""
    day_range, problems = _read_range(user, params, ("kind", *_PARAMETERS))
    if params.get("kind") not in exports.CONTENTS:
        problems.append(gettext("A file can be CSV or JSON."))
    return day_range, problems


def _fields(day_range: DayRange) -> dict[str, object]:
    """Return the parameters of an address or a form that names the same rows."""
    named = {
        "from": day_range.first,
        "to": day_range.last,
        "host": day_range.host_id,
        "project": day_range.project_id,
        "processor": day_range.processor,
        "app": day_range.app_id,
    }
    return {name: str(value) for name, value in named.items() if value is not None}


def _refused(problems: list[str]) -> HttpResponse:
    return HttpResponse(" ".join(problems) + "\n", status=400, content_type="text/plain; charset=utf-8")
