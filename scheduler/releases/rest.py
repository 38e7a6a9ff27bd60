"""REST API of versions: prepare, sign, test, release, withdraw and roll back (docs/how-to/jobs.md).

Files are never signed here with the server's key, because a stolen token must not bring a program to computers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import SpooledTemporaryFile
from typing import Any, Final

from django.core.files import File
from django.db import transaction
from django.http import Http404
from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from credit.models import AppVersion
from portal.audit import two_persons
from portal.audit.who import changes_by
from portal.models import ApiToken
from portal.rest.problems import BodyTooLong, Conflict
from portal.rest.views import ListQuery, OperatorView, page_of
from scheduler.engine.release_states import NotPossible, ReleaseAction
from scheduler.models import ReleaseDraft
from scheduler.programs.release import ReleaseError
from scheduler.releases import drafts, rollout, second_person, steps
from scheduler.releases.rollout import VersionRow

MAX_SIGNATURES_NBYTES: Final = 2 * drafts.MAX_SIGNATURES_NBYTES
_CHUNK_NBYTES: Final = 1024 * 1024
_CONFLICT: Final = OpenApiResponse(description="Not possible in the current state; the answer says why.")


class VersionResult(serializers.Serializer[Any]):
    """A version of an app, and who gets it."""

    id = serializers.IntegerField()
    app = serializers.CharField()
    platform = serializers.CharField()
    version_num = serializers.IntegerField()
    plan_class = serializers.CharField(allow_blank=True)
    state = serializers.ChoiceField(["beta", "released", "withdrawn"])
    actions = serializers.ListField(child=serializers.CharField(), help_text="What can be done with it now.")
    rolls_back_to = serializers.IntegerField(allow_null=True, help_text="The version that a roll-back sends again.")


class ReleaseStep(serializers.Serializer[Any]):
    """What to do with a version."""

    action = serializers.ChoiceField(["test", "release", "withdraw", "roll_back"])
    with_volunteers = serializers.BooleanField(
        default=False, help_text="Also test it on the computers of volunteers who agreed to test."
    )
    reason = serializers.CharField(max_length=500, default="", allow_blank=True, help_text="Stored with the change.")


class ReleaseStepResult(serializers.Serializer[Any]):
    """The outcome."""

    version = serializers.IntegerField(allow_null=True, help_text="Its id; null until it is stored.")
    waits_for_confirmation = serializers.BooleanField(help_text="Whether another operator has to confirm it first.")


class DraftFields(serializers.Serializer[Any]):
    """A version to prepare."""

    version = serializers.DictField(help_text="The fields of version.toml, without the files.")


class DraftResult(serializers.Serializer[Any]):
    """A prepared version: nothing of it is sent before it is signed and released."""

    id = serializers.IntegerField()
    title = serializers.CharField(help_text="App, number, plan class and platform.")
    fault = serializers.CharField(allow_blank=True, help_text="Why it cannot be released yet, apart from signatures.")
    manifest = serializers.DictField(
        allow_null=True, help_text="What manage.py sign_manifest signs where the key is; null if there is a fault."
    )
    unsigned = serializers.ListField(child=serializers.CharField(), help_text="Files that are not signed yet.")
    version = serializers.IntegerField(allow_null=True, help_text="The version created from it.")


class FileUse(serializers.Serializer[Any]):
    """What a program file is for."""

    main_program = serializers.BooleanField(default=False)
    executable = serializers.BooleanField(default=False)
    open_name = serializers.CharField(max_length=200, default="", allow_blank=True)
    copy_file = serializers.BooleanField(default=False)


class Signatures(serializers.Serializer[Any]):
    """Signatures that were made where the key is."""

    signatures = serializers.DictField(
        child=serializers.CharField(max_length=10_000), help_text="By the files' names, as sign_manifest writes them."
    )


class VersionsView(OperatorView):
    """All versions of apps that take jobs."""

    scope = ApiToken.Scope.PROJECT
    query_class = ListQuery

    @extend_schema(
        operation_id="app_versions_list", parameters=[ListQuery], responses=page_of(VersionResult, "Versions")
    )
    def get(self, request: Request) -> Response:
        self.need("scheduler.view_releasedraft")
        query = self.query()
        rows = {row.version.pk: row for row in rollout.read_versions()}
        return self.id_page(AppVersion.objects.filter(pk__in=rows), query, lambda version: _version(rows[version.pk]))


class VersionStepsView(OperatorView):
    """The steps of a stored version."""

    scope = ApiToken.Scope.PROJECT
    http_method_names = ["options", "post"]

    @extend_schema(
        operation_id="app_versions_step",
        request=ReleaseStep,
        responses={200: ReleaseStepResult, 202: ReleaseStepResult, 409: _CONFLICT},
    )
    def post(self, request: Request, pk: int) -> Response:
        """Test, release, withdraw or roll back a version: 202 if another operator has to confirm it.

        Steps that may change credit, such as a withdrawal or its undoing, need a reason.
        """
        self.need(steps.RELEASE)
        self.no_query()
        given = self.body(ReleaseStep)
        version = get_object_or_404(AppVersion.objects.select_related("app", "platform", "beta_test"), pk=pk)
        with _answered():
            action = None if given["action"] == steps.ROLL_BACK else steps.ACTIONS[given["action"]]
            proposal = steps.proposal(version, given["action"], self.volunteer)
            if action == ReleaseAction.RELEASE and two_persons.is_on():
                _ask_second(self, str(version), second_person.payload_of_version(version))
                return Response({"version": version.pk, "waits_for_confirmation": True}, status=202)
            if proposal is not None and two_persons.is_guarded(version, proposal):
                raise Conflict("The version before it is withdrawn. Release that one first, then roll back.")
            if proposal is not None and not given["reason"]:
                raise serializers.ValidationError({"reason": ["This may change credit: say why it is done."]})
            with transaction.atomic(), changes_by(self.volunteer, given["reason"]):
                if action is None:
                    version = rollout.roll_back(version)
                else:
                    rollout.act(
                        version, action, self.volunteer, timezone.now(), with_volunteers=given["with_volunteers"]
                    )
        return Response({"version": version.pk, "waits_for_confirmation": False})


class DraftsView(OperatorView):
    """Prepared versions: list them, or prepare one."""

    scope = ApiToken.Scope.PROJECT
    query_class = ListQuery
    http_method_names = ["get", "head", "options", "post"]

    @extend_schema(
        operation_id="app_version_drafts_list", parameters=[ListQuery], responses=page_of(DraftResult, "Drafts")
    )
    def get(self, request: Request) -> Response:
        self.need("scheduler.view_releasedraft")
        return self.id_page(ReleaseDraft.objects.prefetch_related("files"), self.query(), _draft)

    @extend_schema(operation_id="app_version_drafts_create", request=DraftFields, responses={201: DraftResult})
    def post(self, request: Request) -> Response:
        """Prepare a version; if its app does not exist yet, it is created with the version."""
        self.need("scheduler.add_releasedraft")
        self.no_query()
        given = self.body(DraftFields)
        with _answered():
            drafts.check_fields(given["version"])
        draft = ReleaseDraft.objects.create(creator=self.volunteer, fields=given["version"])
        return Response(_draft(draft), status=201)


class DraftView(OperatorView):
    """A prepared version: show it, sign it, or discard it."""

    scope = ApiToken.Scope.PROJECT
    http_method_names = ["get", "head", "options", "patch", "delete"]
    max_body_nbytes = MAX_SIGNATURES_NBYTES

    @extend_schema(operation_id="app_version_drafts_retrieve", responses=DraftResult)
    def get(self, request: Request, pk: int) -> Response:
        self.need("scheduler.view_releasedraft")
        self.query()
        return Response(_draft(get_object_or_404(ReleaseDraft, pk=pk)))

    @extend_schema(operation_id="app_version_drafts_sign", request=Signatures, responses=DraftResult)
    def patch(self, request: Request, pk: int) -> Response:
        """Store signatures. If one is wrong, none is stored. Safe to repeat."""
        self.need("scheduler.change_releasedraft")
        self.no_query()
        draft = get_object_or_404(ReleaseDraft, pk=pk)
        with _answered():
            drafts.take_signatures(draft, self.body(Signatures)["signatures"])
        return Response(_draft(draft))

    @extend_schema(operation_id="app_version_drafts_delete", responses={204: None})
    def delete(self, request: Request, pk: int) -> Response:
        """Discard it and its files; a version created from it stays."""
        self.need("scheduler.change_releasedraft")
        self.query()
        with _answered():
            drafts.discard(get_object_or_404(ReleaseDraft, pk=pk))
        return Response(status=204)


class DraftFileView(OperatorView):
    """A program file of a prepared version."""

    scope = ApiToken.Scope.PROJECT
    query_class = FileUse
    http_method_names = ["options", "put", "delete"]

    @extend_schema(
        operation_id="app_version_drafts_file",
        parameters=[FileUse],
        request={"application/octet-stream": OpenApiTypes.BINARY},
        responses=DraftResult,
    )
    def put(self, request: Request, pk: int, name: str) -> Response:
        """Upload a file of at most 60 MiB. It replaces one of the same name and its signature. Safe to repeat."""
        self.need("scheduler.change_releasedraft")
        uses = self.query()
        draft = get_object_or_404(ReleaseDraft, pk=pk)
        with SpooledTemporaryFile(max_size=_CHUNK_NBYTES) as content, _answered():
            self.receive(content)
            drafts.add_file(
                draft,
                name,
                File(content, name),
                open_name=uses["open_name"],
                is_main_program=uses["main_program"],
                is_executable=uses["executable"],
                is_copied=uses["copy_file"] or bool(uses["open_name"]),
            )
        return Response(_draft(draft))

    @extend_schema(operation_id="app_version_drafts_remove_file", responses={204: None})
    def delete(self, request: Request, pk: int, name: str) -> Response:
        """Remove a file. Safe to repeat."""
        self.need("scheduler.change_releasedraft")
        self.no_query()
        draft = get_object_or_404(ReleaseDraft, pk=pk)
        with _answered():
            for file in draft.files.all():
                if file.name == name:
                    drafts.remove_file(draft, file.pk)
        return Response(status=204)

    def receive(self, content: SpooledTemporaryFile[bytes]) -> None:
        """Write the body to ``content`` without keeping it in memory. Raises BodyTooLong or ValidationError."""
        length = self.request.META.get("CONTENT_LENGTH") or "0"
        left = int(length) if length.isdecimal() else 0
        if left > drafts.MAX_FILE_NBYTES:
            raise BodyTooLong(f"The body may have at most {drafts.MAX_FILE_NBYTES} bytes.")
        while left and (piece := self.request._request.read(min(left, _CHUNK_NBYTES))):
            content.write(piece)
            left -= len(piece)
        if left:
            raise serializers.ValidationError("The body is shorter than its Content-Length says.")


class DraftReleaseView(OperatorView):
    """Store a signed version, and send it to testers or to all."""

    scope = ApiToken.Scope.PROJECT
    http_method_names = ["options", "post"]

    @extend_schema(
        operation_id="app_version_drafts_release",
        request=ReleaseStep,
        responses={200: ReleaseStepResult, 202: ReleaseStepResult, 409: _CONFLICT},
    )
    def post(self, request: Request, pk: int) -> Response:
        """Test or release it: 202 if another operator has to confirm it. Safe to repeat."""
        self.need(steps.RELEASE)
        self.no_query()
        given = self.body(ReleaseStep)
        draft = get_object_or_404(ReleaseDraft, pk=pk)
        if given["action"] not in ("test", "release"):
            raise serializers.ValidationError({"action": ["A prepared version can only be tested or released."]})
        action = steps.ACTIONS[given["action"]]
        with _answered():
            # Once it is stored there is nothing to confirm: a repeated request gets the version.
            if action == ReleaseAction.RELEASE and two_persons.is_on() and draft.app_version_id is None:
                _ask_second(self, str(draft), second_person.payload_of_draft(draft))
                return Response({"version": None, "waits_for_confirmation": True}, status=202)
            with transaction.atomic(), changes_by(self.volunteer, given["reason"]):
                version = drafts.store(
                    draft, action, self.volunteer, timezone.now(), with_volunteers=given["with_volunteers"]
                )
        return Response({"version": version.pk, "waits_for_confirmation": False})


@contextmanager
def _answered() -> Iterator[None]:
    """Turn errors into answers: an invalid request, a conflict with the version's current state, or a draft that was
    discarded meanwhile.
    """
    try:
        yield
    except ReleaseDraft.DoesNotExist as error:
        raise Http404 from error
    except ReleaseError as error:
        # It may quote a lone surrogate, which no answer can contain.
        raise serializers.ValidationError(str(error).encode(errors="replace").decode()) from error
    except NotPossible as error:
        raise Conflict(str(error.message)) from error


def _ask_second(view: OperatorView, subject: str, payload: two_persons.Payload) -> None:
    """Ask another operator to confirm a release to all."""
    try:
        two_persons.ask(second_person.RELEASE, subject, payload, view.volunteer, timezone.now())
    except two_persons.StepRefused as error:
        raise Conflict(str(error)) from error


def _version(row: VersionRow) -> dict[str, Any]:
    version = row.version
    return {
        "id": version.pk,
        "app": version.app.name,
        "platform": version.platform.name,
        "version_num": version.version_num,
        "plan_class": version.plan_class,
        "state": row.state.name.lower(),
        "actions": [action.name.lower() for action in row.actions] + ["roll_back"] * (row.before is not None),
        "rolls_back_to": row.before.pk if row.before is not None else None,
    }


def _draft(draft: ReleaseDraft) -> dict[str, Any]:
    fault, manifest = _readiness(draft) if draft.app_version_id is None else ("", None)
    return {
        "id": draft.pk,
        "title": str(draft),
        "fault": fault,
        "manifest": manifest,
        "unsigned": [file.name for file in draft.files.all() if not file.signature],
        "version": draft.app_version_id,
    }


def _readiness(draft: ReleaseDraft) -> tuple[str, dict[str, Any] | None]:
    """Return why it cannot be released, and what has to be signed for it."""
    if fault := drafts.fault(draft):
        return fault, None
    try:
        return "", drafts.manifest(draft)
    except ReleaseError as error:  # there is no key to sign for
        return str(error), None
