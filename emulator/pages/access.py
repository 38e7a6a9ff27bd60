"""Access to experiments: the owner by the experiment's number, other people by the token in a shared link."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404

from emulator.models import Experiment, Run
from emulator.pages.examples import PREFIX, example_experiment, example_of, example_runs
from portal.people.access import signed_in


def own_experiment(request: HttpRequest, pk: int) -> Experiment:
    """Return the visitor's own experiment; Http404 for all others."""
    return get_object_or_404(Experiment, pk=pk, owner=signed_in(request))


def readable_experiment(request: HttpRequest, key: str) -> Experiment:
    """Return it by number for its owner; by its share token for anybody, without private names; an example for anybody.

    Http404 for all others.
    """
    if key.startswith(PREFIX):
        return example_experiment(key.removeprefix(PREFIX))
    if key.isascii() and key.isdigit() and len(key) < 19:
        if not request.user.is_authenticated:
            raise Http404("no such experiment")
        return get_object_or_404(Experiment, pk=int(key), owner=request.user)
    experiment = get_object_or_404(Experiment, share_token=key.replace("\0", " "), started_at__isnull=False)
    if experiment.scenario is not None:
        experiment.scenario = _without_names(experiment.scenario)
    return experiment


def _without_names(scenario: dict[str, Any]) -> dict[str, Any]:
    """Return a stored scenario without the names of the computer and its tasks, by which others could recognise it."""
    jobs = [{**job, "name": ""} if "name" in job else job for job in scenario.get("jobs", [])]
    host = {**scenario["host"], "name": ""} if "name" in scenario["host"] else scenario["host"]
    return {**scenario, "host": host, **({"jobs": jobs} if jobs else {})}


def readable_run(request: HttpRequest, key: str, number: int) -> tuple[Experiment, Run]:
    """Return a run of an experiment that the visitor may see, with the experiment."""
    experiment = readable_experiment(request, key)
    if example_of(experiment):
        runs = {run.number: run for run in example_runs(experiment)}
        if number not in runs:
            raise Http404("no such run")
        return experiment, runs[number]
    run = get_object_or_404(Run, experiment=experiment, number=number)
    run.experiment = experiment
    return experiment, run


def share_url(experiment: Experiment) -> str:
    """Return the link by which it is shared; empty if it is not."""
    if experiment.share_token is None:
        return ""
    return f"{settings.SITE_URL.rstrip('/')}/emulator/shared/{experiment.share_token}/"
