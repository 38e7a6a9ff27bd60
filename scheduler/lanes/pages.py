"""The admin page of jobs that wait for certain computers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_POST, require_safe

from credit.models import App
from portal.admin import ReadOnlyAdmin
from scheduler.engine.lanes import is_of_size
from scheduler.lanes.reads import ACTIVE_DAYS, read_lanes, read_sizes
from scheduler.lanes.release import end, free

VIEW: Final = "credit.view_workunit"
CHANGE: Final = "credit.change_batch"


class LanePages(ReadOnlyAdmin):
    """List jobs that wait for certain computers; free or end those that nobody comes for."""

    def get_urls(self) -> list[URLPattern]:
        def guarded(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
            view_with_rights: Callable[..., HttpResponse] = self.admin_site.admin_view(view)
            return view_with_rights

        address = "reserved/<int:app>/<int:lane>/<str:action>/"
        return [
            path("reserved/", guarded(require_safe(self.reserved)), name="reserved_jobs"),
            path(address, guarded(require_POST(self.release)), name="release_reserved_jobs"),
            *super().get_urls(),
        ]

    def reserved(self, request: HttpRequest) -> HttpResponse:
        """Show which jobs wait, for whom, and since when."""
        if not request.user.has_perm(VIEW):
            raise PermissionDenied
        context = {
            **self.admin_site.each_context(request),
            "title": gettext("Jobs for certain computers"),
            "lanes": read_lanes(timezone.now()),
            "sizes": read_sizes(),
            "days": ACTIVE_DAYS,
            "may_change": request.user.has_perm(CHANGE),
        }
        return TemplateResponse(request, "scheduler/admin/reserved_jobs.html", context)

    def release(self, request: HttpRequest, app: int, lane: int, action: str) -> HttpResponse:
        """Let all computers have these jobs, or end them. It is recorded in the app's history."""
        if not request.user.has_perm(CHANGE):
            raise PermissionDenied
        if action not in ("free", "end") or not 0 < lane < 2**63 or is_of_size(lane):
            raise Http404("no such action")
        row = get_object_or_404(App, pk=app)
        if action == "free":
            count = free(row.pk, lane)
            text = gettext("Jobs that all computers may get now: %(number)s.") % {"number": count}
        else:
            count = end(row.pk, lane, timezone.now())
            text = gettext("Jobs that were ended: %(number)s.") % {"number": count}
        self.log_change(request, row, f"{action} {count} jobs of lane {lane}")
        messages.success(request, text)
        return redirect("admin:reserved_jobs")
