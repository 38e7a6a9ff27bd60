"""REST API for submitters of jobs: batches, their progress, and their outputs (docs/how-to/jobs.md).

Operators may submit, and so may volunteers with the permission to add batches. Each monitors, fetches and cancels their
own batches.
"""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response

from credit.models import App, Batch, Result
from portal.models import ApiToken
from portal.rest.problems import Conflict
from portal.rest.views import ApiView, ListQuery, page_of, unless_known
from scheduler.engine.trickle_downs import MAX_TEXT_NBYTES
from scheduler.files.views import send
from scheduler.models import KeptOutput, TrickleDown
from scheduler.submission import batches
from scheduler.submission.forecasts import read_forecast
from scheduler.submission.job_messages import SendingError, send_down
from scheduler.submission.submit import RequestIdUsed, submit
from scheduler.wire.job_fields import JobError

MAX_BODY_NBYTES: Final = 16 * 1024 * 1024


class BatchResult(serializers.Serializer[Any]):
    """A batch and its progress."""

    id = serializers.IntegerField()
    app = serializers.CharField(help_text="The app's short name.")
    name = serializers.CharField()
    request_id = serializers.CharField(allow_null=True)
    created_at = serializers.DateTimeField()
    cancelled_at = serializers.DateTimeField(allow_null=True)
    workunits = serializers.IntegerField()
    done = serializers.IntegerField(help_text="Workunits with a validated result.")
    failed = serializers.IntegerField(help_text="Workunits that ended without a validated result.")
    open = serializers.IntegerField(help_text="Workunits that are not finished.")
    is_finished = serializers.BooleanField(help_text="Whether all outputs can be downloaded.")
    tasks_unsent = serializers.IntegerField()
    tasks_in_progress = serializers.IntegerField()
    tasks_over = serializers.IntegerField()
    outputs = serializers.IntegerField(help_text="Output files that can be downloaded.")


class ForecastResult(serializers.Serializer[Any]):
    """When a batch will be done."""

    batch = serializers.IntegerField()
    made_at = serializers.DateTimeField()
    earliest_at = serializers.DateTimeField(
        allow_null=True, help_text="Null, like latest_at, if the batch is done, or too little was granted recently."
    )
    latest_at = serializers.DateTimeField(allow_null=True)


class OutputResult(serializers.Serializer[Any]):
    """An output file of a validated workunit."""

    id = serializers.IntegerField()
    workunit = serializers.CharField()
    name = serializers.CharField()
    nbytes = serializers.IntegerField()
    md5 = serializers.CharField()
    url = serializers.URLField(help_text="The address to download it from, with the same token.")


class JobMessage(serializers.Serializer[Any]):
    """A message to a running job."""

    task = serializers.CharField(max_length=255, help_text="The name of the running task (result).")
    text = serializers.CharField(trim_whitespace=False, help_text="At most 64 KiB of UTF-8.")


class JobMessageResult(serializers.Serializer[Any]):
    """A message that was sent to a job."""

    id = serializers.IntegerField()
    task = serializers.CharField()
    created_at = serializers.DateTimeField()
    acknowledged_at = serializers.DateTimeField(
        allow_null=True, help_text="When the computer was found to have it; null: not yet."
    )


class Submission(serializers.Serializer[Any]):
    """Jobs to submit; docs/how-to/jobs.md lists the fields of a job."""

    app = serializers.CharField(max_length=64, help_text="The app's short name.")
    name = serializers.CharField(max_length=100, required=False, default="", allow_blank=True)
    request_id = serializers.CharField(
        max_length=64, required=False, allow_null=True, default=None, help_text="Makes a repeated submission harmless."
    )
    exact_names = serializers.BooleanField(
        required=False, default=False, help_text="Use the names of jobs as they are, without a prefix."
    )
    defaults = serializers.DictField(required=False, default=dict, help_text="Values that all jobs have in common.")
    jobs = serializers.ListField(help_text="A table for each job; it may be empty.")  # checked by job_fields


class JobsView(ApiView):
    """Base of the views of jobs: they need a token with the scope, and the permission to submit."""

    scope = ApiToken.Scope.JOBS

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if not batches.may_submit(self.volunteer):
            raise PermissionDenied("Your account may not submit jobs. Ask the operators of this site.")

    def batch(self, pk: int) -> Batch:
        """Return the user's batch; 404 for another person's."""
        return get_object_or_404(batches.visible_batches(self.volunteer), pk=pk)

    def own_batch(self, pk: int) -> Batch:
        """Return a batch that the user may change; 404 for another person's."""
        return get_object_or_404(batches.changeable_batches(self.volunteer), pk=pk)


_USED: Final = OpenApiResponse(description="The id was used for another submission.")
_UNFINISHED: Final = OpenApiResponse(description="The batch still has jobs to do.")


class BatchesQuery(ListQuery):
    """Filters of the list of batches."""

    app = serializers.CharField(
        max_length=64, required=False, help_text="Only batches of the app with this short name."
    )
    name = serializers.CharField(max_length=100, required=False, help_text="Only batches of this name.")
    request_id = serializers.CharField(max_length=64, required=False, help_text="Only the batch of this request.")


class BatchesView(JobsView):
    """My batches; or submit a new one."""

    query_class = BatchesQuery
    max_body_nbytes = MAX_BODY_NBYTES
    http_method_names = ["get", "head", "options", "post"]

    @extend_schema(operation_id="batches_list", parameters=[BatchesQuery], responses=page_of(BatchResult, "Batches"))
    def get(self, request: Request) -> Response:
        query = self.query()
        columns = {"app": "app__name", "name": "name", "request_id": "request_id"}
        filters = {column: query[name] for name, column in columns.items() if name in query}
        rows = self.id_rows(batches.visible_batches(self.volunteer).filter(**filters), query)
        progress = dict(zip((row.pk for row in rows), batches.read_progress(rows), strict=True))
        return self.page(
            rows, query["limit"], lambda row: str(row.pk), lambda row: _batch_result(row, progress[row.pk])
        )

    @extend_schema(
        operation_id="batches_submit", request=Submission, responses={200: BatchResult, 201: BatchResult, 409: _USED}
    )
    def post(self, request: Request) -> Response:
        """Submit jobs. 201 with the new batch; 200 with that of an equal request with the same id.

        409 if the request with this id was different.
        """
        self.no_query()
        given = self.body(Submission)
        app = App.objects.filter(name=given["app"]).first()
        if app is None:
            raise serializers.ValidationError({"app": ["There is no app of this name."]})
        try:
            batch, is_new = submit(
                app,
                given["defaults"],
                given["jobs"],
                owner=self.volunteer,
                name=given["name"],
                request_id=given["request_id"] or "",
                exact_names=given["exact_names"],
                now=timezone.now(),
            )
        except RequestIdUsed as error:
            raise Conflict({error.field: [str(error.message)]}, "request_id_used") from error
        except JobError as error:
            raise serializers.ValidationError({error.field: [str(error.message)]}) from error
        return Response(_batch_result(batch, batches.read_progress([batch])[0]), status=201 if is_new else 200)


class BatchView(JobsView):
    """The progress of a batch."""

    @extend_schema(operation_id="batches_retrieve", responses=BatchResult)
    def get(self, request: Request, pk: int) -> Response:
        self.query()
        batch = self.batch(pk)
        return Response(_batch_result(batch, batches.read_progress([batch])[0]))


class ForecastView(JobsView):
    """When a batch will be done, from recent grants and from the work ahead of it; updated once a minute."""

    @extend_schema(operation_id="batches_forecast", responses=ForecastResult)
    def get(self, request: Request, pk: int) -> Response:
        self.query()
        batch = self.batch(pk)
        told = read_forecast(batch, timezone.now())
        times = {name: getattr(told, name) for name in ("made_at", "earliest_at", "latest_at")}
        return Response({"batch": batch.pk} | {name: at and at.isoformat() for name, at in times.items()})


class JobMessagesView(JobsView):
    """Messages to running jobs of a batch, for programs that take trickle-down messages."""

    query_class = ListQuery
    http_method_names = ["get", "head", "options", "post"]
    max_body_nbytes = 6 * MAX_TEXT_NBYTES

    @extend_schema(
        operation_id="batches_messages", parameters=[ListQuery], responses=page_of(JobMessageResult, "JobMessages")
    )
    def get(self, request: Request, pk: int) -> Response:
        query = self.query()
        messages = TrickleDown.objects.filter(result__workunit__batch=self.batch(pk)).select_related("result")
        rows = self.id_rows(messages, query)
        return self.page(rows, query["limit"], lambda row: str(row.pk), _message_result)

    @extend_schema(operation_id="batches_send_message", request=JobMessage, responses={201: JobMessageResult})
    def post(self, request: Request, pk: int) -> Response:
        """Send a running job a message; repeating the request while it waits has no effect."""
        self.no_query()
        given = self.body(JobMessage)
        result = Result.objects.filter(workunit__batch=self.own_batch(pk), name=given["task"]).first()
        if result is None:
            raise serializers.ValidationError({"task": ["This batch has no task of this name."]})
        try:
            message = send_down(result.pk, given["text"], timezone.now())
        except SendingError as error:
            raise serializers.ValidationError({"text": [str(error.message)]}) from error
        return Response(_message_result(message), status=201)


def _message_result(message: TrickleDown) -> dict[str, Any]:
    acknowledged_at = message.acknowledged_at
    return {
        "id": message.pk,
        "task": message.result.name,
        "created_at": message.created_at.isoformat(),
        "acknowledged_at": acknowledged_at and acknowledged_at.isoformat(),
    }


class CancelView(JobsView):
    """Cancel a batch: no more jobs are sent, and running jobs are aborted. Safe to repeat."""

    http_method_names = ["options", "post"]

    @extend_schema(operation_id="batches_cancel", request=None, responses=BatchResult)
    def post(self, request: Request, pk: int) -> Response:
        self.query()
        batch = self.own_batch(pk)
        batches.cancel(batch, timezone.now())
        batch.refresh_from_db()
        return Response(_batch_result(batch, batches.read_progress([batch])[0]))


class RetireView(JobsView):
    """Delete the outputs of a finished batch once they were fetched. Safe to repeat."""

    http_method_names = ["options", "post"]

    @extend_schema(operation_id="batches_retire", request=None, responses={200: BatchResult, 409: _UNFINISHED})
    def post(self, request: Request, pk: int) -> Response:
        """409 while the batch has unfinished jobs: cancel it first, or wait."""
        self.query()
        batch = self.own_batch(pk)
        try:
            batches.retire(batch, timezone.now())
        except batches.NotFinished as error:
            raise Conflict(str(error), "not_finished") from error
        return Response(_batch_result(batch, batches.read_progress([batch])[0]))


class OutputsView(JobsView):
    """The output files of a batch, in the order in which they were stored: new ones are at the end."""

    query_class = ListQuery

    @extend_schema(operation_id="outputs_list", parameters=[ListQuery], responses=page_of(OutputResult, "Outputs"))
    def get(self, request: Request, pk: int) -> Response:
        query = self.query()
        return self.id_page(KeptOutput.objects.filter(batch=self.batch(pk)), query, self._result)

    def _result(self, output: KeptOutput) -> dict[str, Any]:
        return {
            "id": output.pk,
            "workunit": output.workunit_name,
            "name": output.name,
            "nbytes": output.nbytes,
            "md5": output.md5,
            "url": self.request.build_absolute_uri(reverse("api_output", args=[output.batch_id, output.pk])),
        }


class OutputView(JobsView):
    """One output file, or a range of its bytes."""

    @extend_schema(operation_id="outputs_retrieve", responses={(200, "application/octet-stream"): OpenApiTypes.BINARY})
    def get(self, request: Request, pk: int, output: int) -> HttpResponseBase:
        self.query()
        stored = get_object_or_404(KeptOutput, batch=self.batch(pk), pk=output)
        if (unchanged := unless_known(request, f'"{stored.md5}"')) is not None:
            return unchanged
        return send(request, stored.path, f"{stored.workunit_name}_{stored.name}", stored.nbytes, stored.md5)


def _batch_result(batch: Batch, progress: batches.Progress) -> dict[str, Any]:
    return {
        "id": batch.pk,
        "app": batch.app.name,
        "name": batch.name,
        "request_id": batch.request_id or None,
        "created_at": batch.created_at.isoformat(),
        "cancelled_at": batch.cancelled_at.isoformat() if batch.cancelled_at else None,
        "workunits": batch.nworkunits,
        "done": progress.ndone,
        "failed": progress.nfailed,
        "open": progress.nopen,
        "is_finished": progress.is_finished,
        "tasks_unsent": progress.nunsent,
        "tasks_in_progress": progress.nout,
        "tasks_over": progress.nover,
        "outputs": progress.noutputs,
    }
