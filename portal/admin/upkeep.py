"""The queue of requested work, operating figures, and maintenance."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _

from portal.admin.base import ReadOnlyAdmin, column
from portal.dashboard import registry
from portal.dashboard import views as dashboard_views
from portal.maintenance.admin import MaintenanceRunAdmin
from portal.models import MaintenanceRun, OperatingFigure, RequestedWork
from portal.requested_work import overview, queue
from portal.templatetags.display import significant


class StateFilter(admin.SimpleListFilter):
    """Filters by the state of requested work."""

    title = _("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(state, capfirst(str(words))) for state, words in overview.STATE_WORDS.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[RequestedWork]) -> QuerySet[RequestedWork]:
        rows = overview.STATES.get(self.value() or "")
        return queryset if rows is None else queryset.filter(rows)


class PlacedChangeList(ChangeList):
    """Looks up the rows' places in the queue, with one statement for each kind of work on the page."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        now = timezone.now()
        subjects: dict[str, list[int]] = {}
        for row in self.result_list:
            subjects.setdefault(row.kind, []).append(row.subject)
        standings = {kind: queue.standings(kind, numbers, now) for kind, numbers in subjects.items()}
        for row in self.result_list:
            standing = standings[row.kind].get(row.subject)
            row.place = standing.place if standing is not None and standing.place else None


@admin.register(RequestedWork)
class RequestedWorkAdmin(ReadOnlyAdmin):
    """Runs of the emulator, uploads to it and copies of data: what waits, what is done, and what was given up."""

    list_display = ("kind", "subject", "user", "state", "place", "asked_at", "started_at", "finished_at", "ntries")
    list_filter = (StateFilter, "kind")
    list_select_related = ("user",)
    search_fields = ("user__email",)
    ordering = ("-id",)
    fields = ("user", "kind", "subject", "state", "asked_at", "started_at", "finished_at", "ntries")

    def get_queryset(self, request: HttpRequest) -> QuerySet[RequestedWork]:
        rows: QuerySet[RequestedWork] = super().get_queryset(request)
        return rows.annotate(state_name=overview.STATE)

    def get_changelist(self, request: HttpRequest, **more: Any) -> type[ChangeList]:
        return PlacedChangeList

    @admin.display(description=_("state"), ordering="state_name")
    def state(self, row: Any) -> str:
        return str(overview.STATE_WORDS[row.state_name])

    @admin.display(description=_("place in the queue"))
    def place(self, row: Any) -> int | None:
        place: int | None = row.place
        return place


@admin.register(OperatingFigure)
class OperatingFigureAdmin(ReadOnlyAdmin):
    """The figures as they were taken; the dashboard and its charts are better to read."""

    shown_value = column("value", _("value"), significant)
    list_display = ("title", "series", "taken_at", "shown_value")
    fields = ("title", "name", "series", "taken_at", "shown_value")
    search_fields = ("=name",)
    ordering = ("-taken_at", "name", "label")
    show_full_result_count = False

    @admin.display(description=_("figure"), ordering="name")
    def title(self, row: OperatingFigure) -> str:
        figure = registry.figure(row.name)
        return str(figure.title) if figure is not None else row.name

    @admin.display(description=_("series"), ordering="label")
    def series(self, row: OperatingFigure) -> str:
        figure = registry.figure(row.name)
        return figure.label_text(row.label) if figure is not None else row.label

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view
        own = [
            path("panels/", view(dashboard_views.panels), name="operating_figure_panels"),
            path("history/<str:name>/", view(dashboard_views.figure_history), name="operating_figure_history"),
        ]
        listed: list[URLPattern] = super().get_urls()
        return own + listed


admin.site.register(MaintenanceRun, MaintenanceRunAdmin)
