"""REST API for inputs that many jobs share: announced, sent in pieces, and stored (docs/how-to/jobs.md)."""

from __future__ import annotations

from typing import Any

from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import ParseError
from rest_framework.request import Request
from rest_framework.response import Response

from portal.rest.problems import BodyTooLong, Conflict
from portal.rest.views import ListQuery, page_of
from scheduler.engine.limits import MAX_FILE_NBYTES, is_job_name
from scheduler.files import inputs
from scheduler.files.addresses import download_url
from scheduler.files.inputs import MAX_PIECE_NBYTES, InputConflict, InputError
from scheduler.models import InputUpload
from scheduler.submission.rest import JobsView

_CONFLICT = OpenApiResponse(description="It conflicts with the current state; the answer says why.")


class FileResult(serializers.Serializer[Any]):
    """An input that is being uploaded, or was."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    nbytes = serializers.IntegerField()
    md5 = serializers.CharField()
    received = serializers.IntegerField(help_text="Bytes that have arrived. Continue from there.")
    is_stored = serializers.BooleanField(help_text="Whether jobs can name it.")
    url = serializers.URLField(help_text="Where computers download it, once it is stored.")


class Announcement(serializers.Serializer[Any]):
    """A file to be sent."""

    nbytes = serializers.IntegerField(min_value=0, max_value=MAX_FILE_NBYTES)
    md5 = serializers.RegexField(r"\A[0-9a-f]{32}\Z", help_text="32 lower-case hexadecimal digits.")


class FilesView(JobsView):
    """My files."""

    query_class = ListQuery

    @extend_schema(operation_id="files_list", parameters=[ListQuery], responses=page_of(FileResult, "Files"))
    def get(self, request: Request) -> Response:
        query = self.query()
        return self.id_page(InputUpload.objects.filter(owner=self.volunteer), query, _result)


class FileView(JobsView):
    """One of my files: announce it, send it in pieces, see its progress, delete it."""

    http_method_names = ["get", "head", "options", "put", "patch", "delete"]

    def upload(self, name: str) -> InputUpload:
        return get_object_or_404(InputUpload, owner=self.volunteer, name=name)

    @extend_schema(operation_id="files_retrieve", responses=FileResult)
    def get(self, request: Request, name: str) -> Response:
        self.query()
        return Response(_result(self.upload(name)))

    @extend_schema(
        operation_id="files_announce",
        request=Announcement,
        responses={200: FileResult, 201: FileResult, 409: _CONFLICT},
    )
    def put(self, request: Request, name: str) -> Response:
        """Announce a file: 201 if it is new, 200 if you announced it before.

        409 if the name was used for another file, or by somebody else. Safe to repeat; a new size or MD5 restarts an
        unfinished file.
        """
        self.no_query()
        if not is_job_name(name):
            raise serializers.ValidationError({"name": ["At most 200 letters, digits, _ . # @ and -."]})
        given = self.body(Announcement)
        try:
            upload, is_new = inputs.announce(self.volunteer, name, given["nbytes"], given["md5"], timezone.now())
        except InputError as error:
            raise _refusal(error) from error
        return Response(_result(upload), status=201 if is_new else 200)

    @extend_schema(
        operation_id="files_send",
        parameters=[OpenApiParameter("Upload-Offset", OpenApiTypes.INT64, OpenApiParameter.HEADER, required=True)],
        request={"application/octet-stream": OpenApiTypes.BINARY},
        responses={200: FileResult, 409: _CONFLICT},
    )
    def patch(self, request: Request, name: str) -> Response:
        """Send the next piece of at most 64 MiB, which begins at the byte Upload-Offset. The last one completes the
        file.

        409 if a different number of bytes is here: ask how many, and continue there. If storing the file was
        interrupted, an empty piece at the end requests it again.
        """
        self.no_query()
        upload = self.upload(name)
        offset = _number(request.headers.get("Upload-Offset"), "Upload-Offset")
        nbytes = _number(request.META.get("CONTENT_LENGTH") or "0", "Content-Length")
        if nbytes > MAX_PIECE_NBYTES:
            raise BodyTooLong(f"The body may have at most {MAX_PIECE_NBYTES} bytes.")
        try:
            upload = inputs.receive(upload, offset, nbytes, request._request.read)
        except InputError as error:
            raise _refusal(error) from error
        return Response(_result(upload))

    @extend_schema(operation_id="files_delete", responses={204: None, 409: _CONFLICT})
    def delete(self, request: Request, name: str) -> Response:
        """Delete the file. 409 while unfinished jobs need it.

        Only the same file may be uploaded again with its name.
        """
        self.query()
        try:
            inputs.delete(self.upload(name), timezone.now())
        except InputError as error:
            raise _refusal(error) from error
        return Response(status=204)


def _refusal(error: InputError) -> Exception:
    detail = {error.field: [str(error)]}
    return Conflict(detail, "conflict") if isinstance(error, InputConflict) else serializers.ValidationError(detail)


def _number(text: str | None, field: str) -> int:
    if text is None or not (text.isascii() and text.isdigit() and len(text) <= 19):
        raise ParseError(f"{field} is not a number of bytes.")
    return int(text)


def _result(upload: InputUpload) -> dict[str, Any]:
    return {
        "id": upload.pk,
        "name": upload.name,
        "nbytes": upload.nbytes,
        "md5": upload.md5,
        "received": inputs.received_nbytes(upload),
        "is_stored": upload.file_id is not None,
        "url": download_url(upload.name),
    }
