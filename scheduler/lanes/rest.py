"""REST API of jobs that wait for certain computers (docs/how-to/operate.md)."""

from __future__ import annotations

from typing import Any

from django.contrib.admin.models import CHANGE, LogEntry
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from credit.models import App
from portal.models import ApiToken
from portal.rest.views import OperatorView
from scheduler.engine.lanes import is_of_size
from scheduler.lanes.reads import MAX_SHOWN, WaitingLane, read_lanes
from scheduler.lanes.release import end, free


class ReservedResult(serializers.Serializer[Any]):
    """Jobs of an app that wait for the same computers."""

    app = serializers.CharField(help_text="The app's short name.")
    lane = serializers.CharField(help_text="What they wait for, as a number in decimal text.")
    waits_for = serializers.CharField(help_text="The same in words.")
    jobs = serializers.IntegerField()
    since = serializers.DateTimeField(help_text="When the oldest was created.")
    volunteers = serializers.IntegerField(
        allow_null=True, help_text="Volunteers whose computers could take them and asked recently; null: not counted."
    )
    is_gone = serializers.BooleanField(help_text="Whether what they wait for no longer exists.")


class ReservedList(serializers.Serializer[Any]):
    """Reserved jobs, those that have waited longest first."""

    results = ReservedResult(many=True)


class LaneRelease(serializers.Serializer[Any]):
    """What to do with the jobs of a lane."""

    app = serializers.CharField(max_length=64)
    lane = serializers.RegexField(r"\A[0-9]{1,19}\Z")
    action = serializers.ChoiceField(["free", "end"], help_text="Let all computers have them, or end them.")


class LaneReleaseResult(serializers.Serializer[Any]):
    """The outcome."""

    jobs = serializers.IntegerField(help_text="How many workunits this changed.")


class ReservedJobsView(OperatorView):
    """Jobs that wait for certain computers: list them, let all computers have them, or end them."""

    scope = ApiToken.Scope.PROJECT
    http_method_names = ["get", "head", "options", "post"]

    @extend_schema(operation_id="reserved_jobs_list", responses=ReservedList, description=f"At most {MAX_SHOWN}.")
    def get(self, request: Request) -> Response:
        self.need("credit.view_workunit")
        self.query()
        return Response({"results": [_result(row) for row in read_lanes(timezone.now())]})

    @extend_schema(operation_id="reserved_jobs_release", request=LaneRelease, responses=LaneReleaseResult)
    def post(self, request: Request) -> Response:
        """Let all computers have such jobs, or end them as ones that could not be sent. Safe to repeat."""
        self.need("credit.change_batch")
        self.no_query()
        given = self.body(LaneRelease)
        app, lane = App.objects.filter(name=given["app"]).first(), int(given["lane"])
        if app is None:
            raise serializers.ValidationError({"app": ["There is no app with this name."]})
        if not 0 < lane < 2**63 or is_of_size(lane):
            raise serializers.ValidationError({"lane": ["This is not a lane of such jobs."]})
        count = free(app.pk, lane) if given["action"] == "free" else end(app.pk, lane, timezone.now())
        LogEntry.objects.log_actions(
            self.volunteer.pk, [app], CHANGE, f"{given['action']} {count} jobs of lane {lane}", single_object=True
        )
        return Response({"jobs": count})


def _result(row: WaitingLane) -> dict[str, Any]:
    return {
        "app": row.app.name,
        "lane": str(row.lane.number),
        "waits_for": row.name,
        "jobs": row.njobs,
        "since": row.since.isoformat(),
        "volunteers": row.nowners,
        "is_gone": row.is_gone,
    }
