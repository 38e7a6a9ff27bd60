"""The dashboard's pages, inside the admin: the first page, its refreshed part, and a figure's long chart."""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_safe

from portal.dashboard import reads, registry
from portal.dashboard.charts import chart_data, table_rows

PERMISSION: Final = "portal.view_operatingfigure"
REFRESH_SECS: Final = 60
RANGES: Final = {"1": _("A day"), "7": _("A week"), "31": _("A month"), "366": _("A year")}


def dashboard(request: HttpRequest, context: dict[str, Any]) -> dict[str, Any]:
    """The context of the admin's first page; for those who may not see the figures, only the list of tables."""
    if request.user.has_perm(PERMISSION):
        context |= _figures(request) | {"refresh_secs": REFRESH_SECS}
    return context


def _figures(request: HttpRequest) -> dict[str, Any]:
    """All panels in short, or in full the one that the address names."""
    panel = request.GET.get("panel", "")
    overview = reads.overview(timezone.now(), request.user.has_perm)
    panel_key = panel if panel in {figure.key for figure in overview.panels} else ""
    return {"overview": overview, "shown_panel": panel_key}


@require_safe
def panels(request: HttpRequest) -> HttpResponse:
    """The panels with new figures, for htmx."""
    _check(request)
    return render(request, "admin/dashboard/_panels.html", _figures(request))


@require_safe
def figure_history(request: HttpRequest, name: str) -> HttpResponse:
    """A figure's long chart, its table, and the page behind it."""
    _check(request)
    figure = registry.figure(name)
    if figure is None:
        raise Http404("There is no such figure.")
    chosen = request.GET.get("days", "")
    days = int(chosen) if chosen in RANGES else 7
    now = timezone.now()
    course = reads.long_course(figure, now - dt.timedelta(days=days), now)
    context = {
        **admin.site.each_context(request),
        "title": figure.title,
        "figure": figure,
        "link": reads.address(figure.link),
        "days": str(days),
        "problem": _("“%(text)s” is not a number of days that can be shown. These are the last seven.")
        % {"text": chosen[:20]}
        if chosen and chosen not in RANGES
        else "",
        "ranges": RANGES,
        "labels": list(course.series),
        "rows": table_rows(course),
        "chart": chart_data(course),
        "marks": course.markers,
    }
    return render(request, "admin/dashboard/history.html", context)


def _check(request: HttpRequest) -> None:
    if not request.user.has_perm(PERMISSION):
        raise PermissionDenied
