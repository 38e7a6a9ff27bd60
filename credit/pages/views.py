"""Views of credit: a volunteer's tasks, the explanation of each one's credit, and the project's apps."""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_safe

from credit.models import App, PartState
from credit.pages import app_reads, task_reads
from credit.pages.explanation import explain, explain_parts
from credit.pages.task_filters import read_filters, row_number
from credit.statistics.markers import markers
from portal.people.access import own_hosts, signed_in

CHANGES_SHOWN = dt.timedelta(days=90)


@require_safe
@login_required
def tasks(request: HttpRequest) -> HttpResponse:
    """Show the volunteer's tasks and the credit granted for each."""
    user, now = signed_in(request), timezone.now()
    filters = read_filters(user, request.GET.dict())
    page = task_reads.read_tasks(
        user, now, state=filters.state, host=filters.host, app=filters.app, before=filters.before
    )
    context: dict[str, Any] = {"page": page, "problems": filters.problems}
    if request.headers.get("HX-Target") == "more-tasks":
        return render(request, "credit/_task_rows.html", context)
    context |= {
        "sums": task_reads.read_sums(user, now),
        "states": [(name, label) for name, (label, _) in task_reads.STATES.items()],
        "hosts": own_hosts(user).only("given_name", "domain_name").order_by("pk"),
        "apps": App.objects.only("name", "user_friendly_name"),
    }
    return render(request, "credit/tasks.html", context)


@require_safe
@login_required
def task(request: HttpRequest, pk: int) -> HttpResponse:
    """Show what became of a task, and explain its credit."""
    page = task_reads.read_task_page(signed_in(request), pk, timezone.now())
    if page is None:
        raise Http404("no such task")
    page["explanation"] = explain(page["task"], page["workunit"])
    page["parts"] = explain_parts(task_reads.read_parts(page["task"]), page["task"], page["workunit"])
    page["is_provisional"] = any(row.part.state == PartState.PROVISIONAL for row in page["parts"])
    return render(request, "credit/task.html", page)


@require_safe
@login_required
def task_by_name(request: HttpRequest) -> HttpResponse:
    """Redirect to a task's page by its name or number: the address that BOINC projects have for it."""
    if number := row_number(request.GET.get("resultid", "")):
        return redirect("task", number)
    pk = task_reads.find_task(signed_in(request), request.GET.get("result_name", ""))
    if pk is None:
        raise Http404("no such task")
    return redirect("task", pk)


@require_safe
@login_required
def workunit(request: HttpRequest, pk: int) -> HttpResponse:
    """Show which computers worked on a workunit, and what they found."""
    page = task_reads.read_workunit_page(signed_in(request), pk, timezone.now())
    if page is None:
        raise Http404("no such workunit")
    return render(request, "credit/workunit.html", page)


@require_safe
def apps(request: HttpRequest) -> HttpResponse:
    """List what this project computes."""
    context = {"apps": app_reads.read_apps(), "has_laboratory": settings.CREDIT_LABORATORY_PUBLIC}
    return render(request, "credit/apps.html", context)


@require_safe
@login_required
def app(request: HttpRequest, name: str) -> HttpResponse:
    """Show an app: how its credit is normalised, and how its versions compare."""
    page = app_reads.read_app_page(name, timezone.now())
    if page is None:
        raise Http404("no such app")
    now = timezone.now()
    page["changes"] = markers(page["app"].pk, now - CHANGES_SHOWN, now)[::-1]
    return render(request, "credit/app.html", page)
