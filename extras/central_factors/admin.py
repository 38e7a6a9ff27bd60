"""Operators' pages: projects' exports, and the factors that versions for GPUs may take from them."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from extras.central_factors.candidates import candidates
from extras.central_factors.collect import known_factors
from extras.central_factors.models import CollectedExport, FactorList
from portal.admin import ReadOnlyAdmin
from portal.admin.base import column
from portal.audit import proposals
from portal.languages.sentences import sentence

MAY_SEE = "credit.view_appversion"
MAY_SET = "credit.change_appversion"


@admin.register(CollectedExport)
class CollectedExportAdmin(ReadOnlyAdmin):
    """The projects that this site queries as a central server, and their problems."""

    shown_problem = column("problem", _("problem"), sentence)
    list_display = ("url", "asked_at", "read_at", "nversions", "ncounted", "shown_problem", "refused")
    fields = ("url", "asked_at", "read_at", "shown_problem", "problem_since", "nversions", "ncounted", "refused")

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.factors_view)
        return [path("factors/", view, name="version_factors"), *super().get_urls()]

    def factors_view(self, request: HttpRequest) -> HttpResponse:
        """Show versions for GPUs without a counterpart for CPUs; POST leads to the step before a factor is set."""
        return _factors(request, self.admin_site.each_context(request), self.opts)


@require_http_methods(["GET", "HEAD", "POST"])
def _factors(request: HttpRequest, site: dict[str, Any], opts: Any) -> HttpResponse:
    if not request.user.has_perm(MAY_SEE):
        raise PermissionDenied
    now = timezone.now()
    rows = candidates(now)
    if request.method == "POST":
        if not request.user.has_perm(MAY_SET):
            raise PermissionDenied
        chosen = [row for row in rows if row.can_be_set and str(row.version.pk) == request.POST.get("version")]
        if chosen:
            return redirect("admin:portal_change_step", proposals.keep(request.session, chosen[0].proposal()))
        messages.warning(
            request, gettext("This version already has the factor, or other projects no longer have one for it.")
        )
        return redirect("admin:version_factors")
    server = FactorList.objects.filter(url=settings.CENTRAL_SERVER).first() if settings.CENTRAL_SERVER else None
    rows_asked = CollectedExport.objects.all() if settings.CENTRAL_PROJECTS else ()
    projects = [(project, sentence(project.problem)) for project in rows_asked]
    context = {
        **site,
        "opts": opts,
        "title": gettext("Factors from other projects"),
        "rows": rows,
        "known": known_factors(now),
        "server": server,
        "server_problem": sentence(server.problem) if server is not None else "",
        "central_server": settings.CENTRAL_SERVER,
        "projects": projects,
        "is_central": bool(settings.CENTRAL_PROJECTS),
        "may_set": request.user.has_perm(MAY_SET),
    }
    return TemplateResponse(request, "central_factors/factors.html", context)
