"""The REST API's views: days, sums, hosts, projects and notes of the signed-in volunteer."""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

from django.http import HttpRequest
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.response import Response

from accounting.engine.amounts import NO_WORK
from accounting.exchange.day_rows import DayRange, Place, flag_names, read_names, read_page
from accounting.exchange.downloads import amount_values
from accounting.history.periods import MAX_YEARS, Period, Step, next_start
from accounting.history.reads import By, read_cells
from accounting.history.sums import Cell
from accounting.models import Note, OwnAccount, Project, UserProject
from accounting.rest import results
from portal.models import ApiToken
from portal.people.access import own_hosts
from portal.rest.fields import TruthParam
from portal.rest.views import MAX_ID, ApiView, ListQuery, PageQuery, id_field, page_of

DEFAULT_DAYS: Final = 30
MAX_SUMS: Final = 10_000


class _Range(serializers.Serializer[Any]):
    """A range of UTC days, both ends included; without one, the last thirty."""

    to = serializers.DateField(required=False, help_text="The last day; if left out, today.")

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        # "from" is a keyword in Python, so it cannot be a class attribute.
        first = serializers.DateField(required=False, help_text="The first day; if left out, 29 days before the last.")
        return {"from": first, **super().get_fields()}

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        today = timezone.now().date()
        last = min(attrs.get("to", today), today)
        days_before = min(DEFAULT_DAYS - 1, (last - dt.date.min).days)
        first = attrs.get("from", last - dt.timedelta(days=days_before))
        if first > attrs.get("to", first):
            raise serializers.ValidationError({"from": ["`from` is after `to`."]})
        if (last - first).days > MAX_YEARS * 366:
            raise serializers.ValidationError({"from": [f"A range has at most {MAX_YEARS} years."]})
        return {**attrs, "from": first, "to": last}


class DaysQuery(_Range, PageQuery):
    """The rows to return."""

    project = id_field("project")
    host = id_field("computer")


class SumsQuery(_Range):
    """The range, step and grouping of the totals."""

    step = serializers.ChoiceField(choices=[str(step) for step in Step], default="day")
    by = serializers.ChoiceField(choices=["none", "project", "host"], default="none", help_text="Split the totals.")


class NotesQuery(_Range, ListQuery):
    """The notes to return."""

    project = id_field("project")
    host = id_field("computer")


class HostsQuery(ListQuery):
    """The computers to return."""

    is_retired = TruthParam(required=False, help_text="Only those that are, or are not.")


class ProjectsQuery(ListQuery):
    """The projects to return."""

    is_active = TruthParam(required=False, help_text="Only those that are, or are not.")


class DaysView(ApiView):
    """Daily history: a row for each computer at each project, oldest first."""

    scope = ApiToken.Scope.HISTORY
    query_class = DaysQuery

    @extend_schema(operation_id="days_list", parameters=[DaysQuery], responses=page_of(results.DayResult, "Days"))
    def get(self, request: HttpRequest) -> Response:
        query = self.query()
        day_range = DayRange(query["from"], query["to"], query.get("project"), query.get("host"))
        rows = read_page(self.volunteer, day_range, _read_place(query), query["limit"] + 1)
        names = read_names(self.volunteer)
        return self.page(
            rows,
            query["limit"],
            lambda row: f"{row.day}.{row.project_id}.{row.host_id}",
            lambda row: results.day_result(row, names),
        )


def _read_place(query: dict[str, Any]) -> Place | None:
    text = query.get("cursor")
    if text is None:
        return None
    try:
        day, project, host = text.split(".")
        place = dt.date.fromisoformat(day), int(project), int(host)
    except ValueError:
        place = dt.date.min, -1, -1
    if not all(0 <= id_ <= MAX_ID for id_ in place[1:]):
        raise serializers.ValidationError({"cursor": ["Not a cursor of this list. Take it from `next`."]})
    return place


class SumsView(ApiView):
    """Totals per day, week (from Monday) or month; steps without work are left out."""

    scope = ApiToken.Scope.HISTORY
    query_class = SumsQuery

    @extend_schema(parameters=[SumsQuery], responses=results.SumsResult)
    def get(self, request: HttpRequest) -> Response:
        query = self.query()
        by = {"project": By.PROJECT, "host": By.COMPUTER}.get(query["by"], By.PROCESSOR)
        period = Period(query["from"], query["to"], "", Step(query["step"]))
        cells = read_cells(self.volunteer, period, by, MAX_SUMS + 1)
        if len(cells) > MAX_SUMS:
            raise serializers.ValidationError(
                {"step": [f"More than {MAX_SUMS} sums. Ask for a longer step or a shorter range."]}
            )
        total = NO_WORK
        for cell in cells:
            total = total.plus(cell.amounts)
        return Response({"total": amount_values(total), "results": [_sum(cell, period, by) for cell in cells]})


def _sum(cell: Cell, period: Period, by: By) -> dict[str, Any]:
    end = next_start(cell.start, period.step) - dt.timedelta(days=1) if cell.start < period.last else period.last
    return {
        "first": max(cell.start, period.first).isoformat(),
        "last": min(end, period.last).isoformat(),
        "project_id": cell.key if by is By.PROJECT else None,
        "host_id": cell.key if by is By.COMPUTER else None,
        **amount_values(cell.amounts),
        "flags": flag_names(cell.flags),
    }


class HostsView(ApiView):
    """All computers, including retired ones; merged records are part of the remaining one."""

    scope = ApiToken.Scope.HOSTS
    query_class = HostsQuery

    @extend_schema(operation_id="hosts_list", parameters=[HostsQuery], responses=page_of(results.HostResult, "Hosts"))
    def get(self, request: HttpRequest) -> Response:
        query = self.query()
        hosts = results.with_grants(own_hosts(self.volunteer))
        if "is_retired" in query:
            hosts = hosts.filter(retired_at__isnull=not query["is_retired"])
        return self.id_page(hosts, query, results.host_result)


class HostView(ApiView):
    """One computer."""

    scope = ApiToken.Scope.HOSTS

    @extend_schema(responses=results.HostResult)
    def get(self, request: HttpRequest, pk: int) -> Response:
        self.query()
        host = results.with_grants(own_hosts(self.volunteer)).filter(pk=pk).first()
        if host is None:
            raise NotFound("There is no such computer of yours.")
        return Response(results.host_result(host))


class ProjectsView(ApiView):
    """All projects to which computers can be attached, or could be attached earlier."""

    scope = ApiToken.Scope.PROJECTS
    query_class = ProjectsQuery

    @extend_schema(
        operation_id="projects_list", parameters=[ProjectsQuery], responses=page_of(results.ProjectResult, "Projects")
    )
    def get(self, request: HttpRequest) -> Response:
        query = self.query()
        projects = Project.objects.all()
        if "is_active" in query:
            projects = projects.filter(is_active=query["is_active"])
        rows = self.id_rows(projects, query)
        mine = {row.project_id: row for row in UserProject.objects.filter(user=self.volunteer, project__in=rows)}
        own = {row.project_id: row for row in OwnAccount.objects.filter(user=self.volunteer, project__in=rows)}
        return self.page(
            rows,
            query["limit"],
            lambda project: str(project.pk),
            lambda project: results.project_result(project, mine.get(project.pk), own.get(project.pk)),
        )


class ProjectView(ApiView):
    """One project."""

    scope = ApiToken.Scope.PROJECTS

    @extend_schema(responses=results.ProjectResult)
    def get(self, request: HttpRequest, pk: int) -> Response:
        self.query()
        project = Project.objects.filter(pk=pk).first()
        if project is None:
            raise NotFound("There is no such project.")
        mine = UserProject.objects.filter(user=self.volunteer, project=project).first()
        own = OwnAccount.objects.filter(user=self.volunteer, project=project).first()
        return Response(results.project_result(project, mine, own))


class NotesView(ApiView):
    """Notes about reports."""

    scope = ApiToken.Scope.NOTES
    query_class = NotesQuery

    @extend_schema(operation_id="notes_list", parameters=[NotesQuery], responses=page_of(results.NoteResult, "Notes"))
    def get(self, request: HttpRequest) -> Response:
        query = self.query()
        notes = Note.objects.filter(host__owner=self.volunteer, day__range=(query["from"], query["to"]))
        notes = notes.filter(**{f"{name}_id": query[name] for name in ("project", "host") if name in query})
        return self.id_page(notes.select_related("project"), query, results.note_result)
