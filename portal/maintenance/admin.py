"""The page "Maintenance": each job, its last runs, and a button that starts it."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext, gettext_lazy
from django.views.decorators.http import require_POST
from unfold.admin import ModelAdmin

from portal.maintenance import runs
from portal.maintenance.jobs import jobs
from portal.people.access import signed_in


class MaintenanceRunAdmin(ModelAdmin):
    """Runs of checks and other upkeep."""

    fields = ("job", "asked_by", "asked_at", "started_at", "finished_at", "nlines", "found", "failure")
    readonly_fields = fields

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(require_POST(self.start))
        return [path("start/<slug:name>/", view, name="portal_maintenancerun_start"), *super().get_urls()]

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        """Redirect to the page of all runs, where they are started."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        return redirect("admin:portal_maintenancerun_changelist")

    @admin.display(description=gettext_lazy("found"))
    def found(self, run: Any) -> str:
        """The run's findings, one a line."""
        return "\n".join(run.lines)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """List the jobs that can be started, with the findings of their last runs."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": gettext("Maintenance"),
            "rows": runs.read_rows(),
            "may_start": self.has_add_permission(request),
            "max_lines": runs.MAX_LINES,
        }
        return TemplateResponse(request, "admin/portal/maintenance/page.html", context)

    def start(self, request: HttpRequest, name: str) -> HttpResponse:
        """Start a job."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        if name not in jobs():
            raise Http404("no such job")
        try:
            runs.ask(name, signed_in(request))
        except runs.CannotStartError as error:
            messages.error(request, f"{jobs()[name].title}: {error}")
        else:
            messages.success(
                request,
                gettext("%(job)s: a worker will start soon. This page will show what it finds.")
                % {"job": jobs()[name].title},
            )
        return redirect("admin:portal_maintenancerun_changelist")
