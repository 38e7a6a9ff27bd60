"""The REST API of the emulator: experiments of a volunteer, from a scenario to the results of its runs."""

from __future__ import annotations

from typing import Any, Final

from django.db import transaction
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils import timezone, translation
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from emulator.engine.scenario import ScenarioError
from emulator.files.scenario_json import DOCUMENT_BYTES_MAX
from emulator.models import Experiment, Run, RunState
from emulator.pages import downloads
from emulator.rest.submission import Submission, read_submission
from emulator.runs import experiments
from emulator.runs.experiments import UNFINISHED, ExperimentRefusedError
from portal.models import ApiToken
from portal.rest.problems import Conflict
from portal.rest.views import ApiView, ListQuery, page_of

ORIGIN: Final = "api"


class RunResult(serializers.Serializer[Any]):
    """A run of an experiment."""

    number = serializers.IntegerField()
    variant = serializers.CharField()
    policy = serializers.CharField()
    quirks = serializers.BooleanField(help_text="As BOINC's own emulator where it differs.")
    parameters = serializers.DictField()
    seed = serializers.IntegerField()
    state = serializers.ChoiceField(choices=RunState.values)
    progress = serializers.FloatField(help_text="0 to 1.")
    fault = serializers.CharField(help_text="Why it failed.", allow_blank=True)
    figures_of_merit = serializers.DictField(allow_null=True, help_text="Null until it is done.")
    result_url = serializers.URLField(allow_null=True, help_text="Its result; null until it is done.")


class ExperimentResult(serializers.Serializer[Any]):
    """An experiment and its runs."""

    id = serializers.IntegerField()
    title = serializers.CharField()
    request_id = serializers.CharField(allow_null=True)
    days = serializers.FloatField()
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    is_finished = serializers.BooleanField(help_text="Whether no run waits or is executed any more.")
    page_url = serializers.URLField(help_text="Its page on the site.")
    runs = RunResult(many=True)


class ExperimentRequest(serializers.Serializer[Any]):
    """A document with a scenario (docs/reference/scenario-json.md), and settings to try with it."""

    title = serializers.CharField(max_length=100, required=False)
    request_id = serializers.CharField(
        max_length=64, required=False, help_text="Makes a repeated request harmless: it answers with the first one."
    )
    variants = serializers.ListField(
        child=serializers.DictField(),
        required=False,
        help_text="Tables of policy, quirks, parameters and label. Left out: the one of the document.",
    )
    seeds = serializers.ListField(
        child=serializers.IntegerField(), required=False, help_text="Of each variant. Left out: the document's seed."
    )
    version = serializers.IntegerField(help_text="Of the document: 1.")
    scenario = serializers.DictField(help_text="As /emulator/scenario.schema.json describes it.")
    days = serializers.FloatField(required=False, default=30, help_text="Simulated days.")
    policy = serializers.CharField(required=False, default="rec")
    quirks = serializers.BooleanField(required=False, default=False)
    parameters = serializers.DictField(required=False)
    seed = serializers.IntegerField(required=False, default=1)


class EmulatorView(ApiView):
    """The base of these views."""

    scope = ApiToken.Scope.EMULATOR

    def experiment(self, pk: int) -> Experiment:
        """Return the user's experiment; 404 for another person's."""
        return get_object_or_404(Experiment.objects.prefetch_related("runs"), owner=self.volunteer, pk=pk)

    def result(self, experiment: Experiment) -> dict[str, Any]:
        """Return an experiment with its runs."""
        runs = list(experiment.runs.all())
        return {
            "id": experiment.pk,
            "title": experiment.title,
            "request_id": experiment.request_id or None,
            "days": experiment.days,
            "created_at": experiment.created_at.isoformat(),
            "started_at": experiment.started_at.isoformat() if experiment.started_at else None,
            "is_finished": bool(runs) and not any(run.state in UNFINISHED for run in runs),
            "page_url": self.request.build_absolute_uri(reverse("experiment", args=[experiment.pk])),
            "runs": [self._run(run) for run in runs],
        }

    def _run(self, run: Run) -> dict[str, Any]:
        is_done = run.state == RunState.DONE
        address = reverse("api_experiment_run", args=[run.experiment_id, run.number])
        return {
            "number": run.number,
            "variant": run.variant,
            "policy": run.policy,
            "quirks": run.has_quirks,
            "parameters": run.parameters,
            "seed": run.seed,
            "state": run.state,
            "progress": run.progress,
            "fault": str(run.fault or ""),
            "figures_of_merit": run.figures if is_done else None,
            "result_url": self.request.build_absolute_uri(address) if is_done else None,
        }


_REFUSED: Final = OpenApiResponse(description="A limit of yours is reached.")


class ExperimentsView(EmulatorView):
    """My experiments; POST starts a new one."""

    query_class = ListQuery
    max_body_nbytes = DOCUMENT_BYTES_MAX
    http_method_names = ["get", "head", "options", "post"]

    @extend_schema(
        operation_id="experiments_list", parameters=[ListQuery], responses=page_of(ExperimentResult, "Experiments")
    )
    def get(self, request: Request) -> Response:
        query = self.query()
        experiments_of = Experiment.objects.filter(owner=self.volunteer)
        return self.id_page(experiments_of.defer("scenario", "draft").prefetch_related("runs"), query, self.result)

    @extend_schema(
        operation_id="experiments_start",
        request=ExperimentRequest,
        responses={200: ExperimentResult, 201: ExperimentResult, 409: _REFUSED},
    )
    def post(self, request: Request) -> Response:
        """Start an experiment. 201 with the new one; 200 with the one from an earlier request with the same id."""
        self.no_query()
        try:
            submission = read_submission(self.json())
            experiment, is_new = self._started(submission)
        except ScenarioError as error:
            if error.why.code == "used_for_other_scenario":
                raise Conflict({error.field: [str(error.why)]}) from error
            raise serializers.ValidationError({error.field: [str(error.why)]}) from error
        except ExperimentRefusedError as refusal:
            raise Conflict(str(refusal)) from refusal
        return Response(self.result(self.experiment(experiment.pk)), status=201 if is_new else 200)

    @transaction.atomic
    def _started(self, submission: Submission) -> tuple[Experiment, bool]:
        # This API speaks English, whatever language the volunteer reads.
        with translation.override("en"):
            experiment, is_new = experiments.create_once(
                self.volunteer,
                submission.title,
                ORIGIN,
                submission.scenario,
                submission.days,
                request_id=submission.request_id,
            )
            if is_new:
                experiments.start(
                    experiment,
                    submission.scenario,
                    title=submission.title,
                    days=submission.days,
                    variants=submission.variants,
                    seeds=submission.seeds,
                    parameter="",
                    now=timezone.now(),
                )
            return experiment, is_new


class ExperimentView(EmulatorView):
    """The progress of an experiment, and its figures."""

    http_method_names = ["get", "head", "options", "delete"]

    @extend_schema(operation_id="experiments_retrieve", responses=ExperimentResult)
    def get(self, request: Request, pk: int) -> Response:
        self.query()
        return Response(self.result(self.experiment(pk)))

    @extend_schema(operation_id="experiments_delete", responses={204: None})
    def delete(self, request: Request, pk: int) -> Response:
        """Delete it with its runs, including unfinished ones."""
        self.query()
        experiments.delete(self.experiment(pk))
        return Response(status=204)


class RunView(EmulatorView):
    """The result of a run: a document, with the figures and each project's work."""

    @extend_schema(operation_id="experiments_result", responses=OpenApiTypes.OBJECT)
    def get(self, request: Request, pk: int, number: int) -> Response:
        self.query()
        run = Run.objects.filter(experiment__owner=self.volunteer, experiment=pk, number=number, state=RunState.DONE)
        done_run = run.select_related("experiment").first()
        if done_run is None:
            raise NotFound("There is no such run of yours, or it is not done.")
        return Response(downloads.as_json(done_run))
