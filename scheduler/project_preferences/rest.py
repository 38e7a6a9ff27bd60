"""REST API of a volunteer's preferences for this project, for their own programs to read."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from portal.models import ApiToken
from portal.rest.views import ApiView
from scheduler.project_preferences.save import read_saved


class PlacePreferences(serializers.Serializer[Any]):
    """The preferences at a place."""

    place = serializers.CharField(help_text="home, work or school; empty: places without preferences of their own.")
    apps = serializers.ListField(child=serializers.IntegerField(), help_text="Ids of the chosen apps; empty: all.")
    other_apps = serializers.BooleanField(help_text="Whether others are sent when the chosen ones have no tasks.")
    max_jobs = serializers.IntegerField(allow_null=True, help_text="Tasks at a time on a computer; null: no limit.")
    max_cpus = serializers.IntegerField(allow_null=True, help_text="Processors that count; null: all.")
    max_threads = serializers.IntegerField(allow_null=True, help_text="Processors of one task; null: no limit.")
    tests = serializers.BooleanField(help_text="Whether versions under test are sent, if the volunteer agreed to test.")
    refused_types = serializers.ListField(child=serializers.CharField(), help_text="Kinds of processors not to use.")
    resource_share = serializers.FloatField(allow_null=True, help_text="Without an account manager; null: not chosen.")


class AllPlaces(serializers.Serializer[Any]):
    """The preferences, by place."""

    results = PlacePreferences(many=True)


class PreferencesView(ApiView):
    """My preferences for this project; no results if nothing was ever chosen."""

    scope = ApiToken.Scope.PROJECTS

    @extend_schema(operation_id="project_preferences_retrieve", responses=AllPlaces)
    def get(self, request: Request) -> Response:
        self.query()
        saved = sorted(read_saved(self.volunteer).items())
        return Response({"results": [{"place": venue} | asdict(chosen) for venue, chosen in saved]})
