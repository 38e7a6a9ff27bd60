"""The REST API of scripts: read, store, and have an app use one (docs/how-to/scripts.md)."""

from __future__ import annotations

from typing import Any, Final

from django.core.exceptions import ValidationError
from django.db import transaction
from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from credit.models import App
from extras.scripts import storing
from extras.scripts.models import MAX_SOURCE_CHARS, Script
from portal.audit import two_persons
from portal.audit.who import changes_by
from portal.models import ApiToken
from portal.rest.views import ListQuery, OperatorView, page_of

# Names of fields here: a serializer has a "source" of its own.
_FIELDS: Final = {
    **{name: name for name in ("kind", "protocol", "words", "check_words", "max_secs", "max_memory_mib")},
    **{"program": "source", "check_program": "check_source"},
}


class ScriptResult(serializers.Serializer[Any]):
    """A script, and its latest failure."""

    name = serializers.CharField()
    kind = serializers.ChoiceField(Script.Kind.choices)
    protocol = serializers.ChoiceField(Script.Protocol.choices)
    program = serializers.CharField(allow_blank=True, help_text="Empty until another operator has confirmed it.")
    words = serializers.CharField(allow_blank=True)
    check_program = serializers.CharField(allow_blank=True)
    check_words = serializers.CharField(allow_blank=True)
    max_secs = serializers.IntegerField()
    max_memory_mib = serializers.IntegerField()
    function = serializers.CharField(help_text="What an app names.")
    waits_for_confirmation = serializers.BooleanField(help_text="Whether another operator has to confirm this change.")
    last_fault = serializers.CharField(allow_blank=True)
    failed_at = serializers.DateTimeField(allow_null=True)
    rests_until = serializers.DateTimeField(allow_null=True)


class StoredScript(serializers.Serializer[Any]):
    """The new version of a script. Fields left out get their defaults."""

    kind = serializers.ChoiceField(Script.Kind.choices)
    protocol = serializers.ChoiceField(Script.Protocol.choices, default=Script.Protocol.LINES.value)
    program = serializers.CharField(max_length=MAX_SOURCE_CHARS, trim_whitespace=False)
    words = serializers.CharField(max_length=200, default="", allow_blank=True)
    check_program = serializers.CharField(
        max_length=MAX_SOURCE_CHARS, default="", allow_blank=True, trim_whitespace=False
    )
    check_words = serializers.CharField(max_length=200, default="", allow_blank=True)
    max_secs = serializers.IntegerField(default=10)
    max_memory_mib = serializers.IntegerField(default=256)
    reason = serializers.CharField(max_length=500, default="", allow_blank=True, help_text="Kept with the change.")


class UsedBy(serializers.Serializer[Any]):
    """The app that will use it."""

    app = serializers.CharField(max_length=64, help_text="The app's short name.")
    reason = serializers.CharField(max_length=500, default="", allow_blank=True, help_text="Kept with the change.")


class ScriptApiView(OperatorView):
    """The base of the views of scripts."""

    scope = ApiToken.Scope.SCRIPTS
    # Two programs; in JSON each character may take six
    max_body_nbytes = 16 * MAX_SOURCE_CHARS


class ScriptsView(ScriptApiView):
    """All scripts, in the order of their creation."""

    query_class = ListQuery

    @extend_schema(operation_id="scripts_list", parameters=[ListQuery], responses=page_of(ScriptResult, "Scripts"))
    def get(self, request: Request) -> Response:
        self.need("scripts.view_script")
        return self.id_page(Script.objects.all(), self.query(), _result)


class ScriptView(ScriptApiView):
    """One script: read it, or store it."""

    http_method_names = ["get", "head", "options", "put"]

    @extend_schema(operation_id="scripts_retrieve", responses=ScriptResult)
    def get(self, request: Request, name: str) -> Response:
        self.need("scripts.view_script")
        self.query()
        return Response(_result(get_object_or_404(Script, name=name)))

    @extend_schema(
        operation_id="scripts_store",
        request=StoredScript,
        responses={200: ScriptResult, 201: ScriptResult, 202: ScriptResult},
    )
    def put(self, request: Request, name: str) -> Response:
        """Store a script under this name: 201 if it is new, 200 if not, 202 if another operator has to confirm it."""
        self.need("scripts.add_script", "scripts.change_script")
        self.no_query()
        given = self.body(StoredScript)
        with transaction.atomic(), changes_by(self.volunteer, given["reason"]):
            script = Script.objects.select_for_update(no_key=True).filter(name=name).first()
            is_new = script is None
            script = script or Script(name=name, kind=given["kind"])
            if script.kind != given["kind"]:
                raise serializers.ValidationError({"kind": [f"It {script.get_kind_display()}. Choose another name."]})
            for called, field in _FIELDS.items():
                setattr(script, field, given[called])
            try:
                script.full_clean()
                is_stored = storing.save(script, self.volunteer, timezone.now())
            except ValidationError as error:
                raise serializers.ValidationError(error.message_dict) from error
            except two_persons.StepRefused as error:
                raise PermissionDenied(str(error)) from error
        answer = {**_result(script), "waits_for_confirmation": not is_stored}
        return Response(answer, status=(201 if is_new else 200) if is_stored else 202)


class UseView(ScriptApiView):
    """Have an app use a script. Safe to repeat."""

    http_method_names = ["options", "post"]

    @extend_schema(operation_id="scripts_use", request=UsedBy, responses=ScriptResult)
    def post(self, request: Request, name: str) -> Response:
        self.need("scripts.view_script", "credit.change_app")
        self.no_query()
        given = self.body(UsedBy)
        with transaction.atomic(), changes_by(self.volunteer, given["reason"]):
            script = get_object_or_404(Script, name=name)
            if not script.source:
                raise serializers.ValidationError({"name": ["Another operator has to confirm its program first."]})
            app = App.objects.select_for_update(no_key=True).filter(name=given["app"]).first()
            if app is None:
                raise serializers.ValidationError({"app": ["There is no app of this name."]})
            storing.use(script, app)
        return Response(_result(script))


def _result(script: Script) -> dict[str, Any]:
    return {
        "name": script.name,
        **{called: getattr(script, field) for called, field in _FIELDS.items()},
        "function": script.function_name,
        "waits_for_confirmation": not script.source,
        "last_fault": script.last_fault,
        "failed_at": script.failed_at.isoformat() if script.failed_at else None,
        "rests_until": script.rests_until.isoformat() if script.rests_until else None,
    }
