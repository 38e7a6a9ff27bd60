"""Pages of a volunteer's archived tasks: their history, and the explanation of each one's credit."""

from __future__ import annotations

from typing import Final

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from credit.pages.explanation import explain, explain_parts
from credit.pages.state_texts import reason_text, state_text
from credit.pages.task_filters import row_number
from credit.pages.task_reads import TaskRow
from portal.people.access import signed_in
from scheduler.lifecycle import purge

PAGE_TASKS: Final = 50


@require_safe
@login_required
def archived_tasks(request: HttpRequest) -> HttpResponse:
    """List the tasks that the volunteer's computers worked on some time ago."""
    text = request.GET.get("before", "")
    before = row_number(text)
    problem = ""
    if text and before is None:
        problem = _("“%(text)s” is not the number of a task. The list begins with the latest one.") % {
            "text": text[:20]
        }
    page = purge.read_archived(signed_in(request), before=before, limit=PAGE_TASKS + 1)
    now = timezone.now()
    rows = [TaskRow(task, state_text(task, now), True) for task in page[:PAGE_TASKS]]
    next_before = rows[-1].task.pk if len(page) > PAGE_TASKS else None
    return render(
        request, "scheduler/archived_tasks.html", {"rows": rows, "next_before": next_before, "problem": problem}
    )


@require_safe
@login_required
def archived_task(request: HttpRequest, pk: int) -> HttpResponse:
    """Show how an archived task ended, and explain its credit."""
    task = purge.read_archived_task(signed_in(request), pk) if pk < 2**63 else None
    if task is None:
        raise Http404("no such task")
    context = {
        "task": task,
        "state": state_text(task, timezone.now()),
        "exit_text": reason_text(task),
        "explanation": explain(task, task.workunit),
        "parts": explain_parts(purge.read_archived_parts(pk), task, task.workunit),
    }
    return render(request, "scheduler/archived_task.html", context)
