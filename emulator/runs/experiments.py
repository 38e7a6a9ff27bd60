"""Make, start, cancel, share and delete experiments. Anything that counts against a quota is one transaction that locks
the owner's row first, then the experiment's, so that quotas hold however many requests come at once.
"""

from __future__ import annotations

import datetime as dt
import secrets
from collections.abc import Sequence
from typing import Any, Final

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext, ngettext

from emulator.engine.scenario import Scenario, ScenarioError
from emulator.files.scenario_json import Document, from_json, to_json
from emulator.models import Experiment, Run, RunState
from emulator.runs.variants import Variant
from portal.models import User
from portal.requested_work import queue

VARIANTS_MAX: Final = 8
SEEDS_MAX: Final = 10
RUNS_MAX: Final = 40

RUN: Final = "emulator run"
READ: Final = "emulator files"
"""The kinds of requested work: execute a run, read an experiment's uploaded files."""

UNFINISHED: Final = (RunState.QUEUED, RunState.RUNNING)


class ExperimentRefusedError(Exception):
    """The request is not possible; the message says why and what to do."""


@transaction.atomic
def create(
    owner: User,
    title: str,
    origin: str,
    scenario: Scenario | None,
    days: float,
    trial: dict[str, Any] | None = None,
) -> Experiment:
    """Create an experiment without runs; ``trial`` as `trial_of` makes it.

    Raises ExperimentRefusedError when the owner has the maximum number.
    """
    User.objects.select_for_update(no_key=True).only("pk").get(pk=owner.pk)
    if Experiment.objects.filter(owner=owner).count() >= settings.EMULATOR_EXPERIMENTS_MAX:
        raise ExperimentRefusedError(
            ngettext(
                "You have %(number)s experiment, which is the limit. Delete it and try again.",
                "You have %(number)s experiments, which is the limit. Delete one you no longer need and try again.",
                settings.EMULATOR_EXPERIMENTS_MAX,
            )
            % {"number": settings.EMULATOR_EXPERIMENTS_MAX}
        )
    document = None if scenario is None else to_json(scenario)
    return Experiment.objects.create(
        owner=owner,
        title=title[:100] or gettext("Experiment"),
        origin=origin[:200],
        scenario=document,
        days=days,
        draft={"trial": trial} if trial else {},
    )


@transaction.atomic
def create_once(
    owner: User, title: str, origin: str, scenario: Scenario, days: float, *, request_id: str
) -> tuple[Experiment, bool]:
    """Return the owner's experiment of this request, and whether it is new; without a ``request_id`` it always is.

    Raises ExperimentRefusedError, and ScenarioError if that request was for another scenario.
    """
    # The owner's row is locked, so that two such requests at once make one.
    User.objects.select_for_update(no_key=True).only("pk").get(pk=owner.pk)
    if request_id:
        before = Experiment.objects.filter(owner=owner, request_id=request_id).first()
        if before is not None:
            if before.days != days or from_json(before.scenario) != scenario:
                raise ScenarioError("request_id", "used_for_other_scenario")
            return before, False
    made = create(owner, title, origin, scenario, days)
    made.request_id = request_id
    made.save(update_fields=["request_id"])
    return made, True


def trial_of(document: Document) -> dict[str, Any]:
    """Return the settings to try from a document, once its scenario has the parameters that are preferences."""
    rest = {
        "half_life_days": document.parameters.half_life_days,
        "eligibility_rule": document.parameters.eligibility_rule,
    }
    parameters = {name: value for name, value in rest.items() if value is not None}
    return {
        "policy": document.policy.value,
        "quirks": document.quirks,
        "seed": document.seed,
        "parameters": parameters,
    }


def edited(experiment: Experiment, scenario: Scenario, title: str, days: float) -> None:
    """Store the scenario from the editor; the experiment's row is locked, and it was not started."""
    experiment.scenario, experiment.title, experiment.days = to_json(scenario), title[:100], days
    experiment.draft.pop("editor", None)
    experiment.save(update_fields=["scenario", "title", "days", "draft"])


@transaction.atomic
def start(
    experiment: Experiment,
    scenario: Scenario,
    *,
    title: str,
    days: float,
    variants: Sequence[Variant],
    seeds: Sequence[int],
    parameter: str,
    now: dt.datetime,
) -> list[Run]:
    """Store the variants and queue a run for each variant and seed; the first seed of each keeps its timeline.

    Raises ExperimentRefusedError when it was started before, or for too many runs.
    """
    User.objects.select_for_update(no_key=True).only("pk").get(pk=experiment.owner_id)
    fresh = Experiment.objects.select_for_update().get(pk=experiment.pk)
    if fresh.started_at is not None:
        raise ExperimentRefusedError(
            gettext("This experiment has already been started. To try something else, change a copy of it.")
        )
    number = len(variants) * len(seeds)
    if not 0 < number <= RUNS_MAX:
        raise ExperimentRefusedError(
            gettext(
                "That makes %(number)s runs. An experiment can have 1 to %(limit)s. "
                "Choose fewer policies, values or seeds."
            )
            % {"number": number, "limit": RUNS_MAX}
        )
    waiting = Run.objects.filter(experiment__owner=experiment.owner_id, state__in=UNFINISHED).count()
    if waiting + number > settings.EMULATOR_RUNS_MAX:
        raise ExperimentRefusedError(
            gettext(
                "You would have %(number)s unfinished runs, and the limit is %(limit)s. "
                "Wait for some to finish, or cancel some."
            )
            % {"number": waiting + number, "limit": settings.EMULATOR_RUNS_MAX}
        )
    fresh.title, fresh.days, fresh.parameter = title[:100] or fresh.title, days, parameter
    fresh.scenario, fresh.started_at, fresh.draft = to_json(scenario), now, {}
    fresh.save()
    runs = Run.objects.bulk_create(
        Run(
            experiment=fresh,
            number=place,
            variant=variant.label,
            policy=variant.policy,
            has_quirks=variant.has_quirks,
            parameters=variant.parameters,
            value=variant.value,
            seed=seed,
            keeps_timeline=seed == seeds[0],
        )
        for place, (variant, seed) in enumerate(((v, s) for v in variants for s in seeds), 1)
    )
    queue.ask(fresh.owner_id, RUN, [run.pk for run in runs])
    return runs


@transaction.atomic
def copy(experiment: Experiment, owner: User) -> Experiment:
    """Copy the scenario for this owner, who can change it and run it again. A copy of another person's experiment names
    its source.
    """
    made = create(owner, experiment.title, experiment.origin, from_json(experiment.scenario), experiment.days)
    if experiment.owner_id != owner.pk:
        made.forked_from = experiment
        made.save(update_fields=["forked_from"])
    return made


def cancel(experiment: Experiment, now: dt.datetime) -> int:
    """Cancel unfinished runs: queued ones at once, running ones at their worker's next report. Returns a count."""
    with transaction.atomic():
        runs = Run.objects.filter(experiment=experiment)
        queue.withdraw(RUN, runs.values_list("pk", flat=True))
        queued = runs.filter(state=RunState.QUEUED).update(state=RunState.CANCELLED, finished_at=now)
        return queued + runs.filter(state=RunState.RUNNING).update(cancel_asked=True)


def share(experiment: Experiment) -> str:
    """Returns an unguessable token, which gives read access to the experiment."""
    with transaction.atomic():
        fresh = Experiment.objects.select_for_update().get(pk=experiment.pk)
        if fresh.share_token is None:
            fresh.share_token = secrets.token_urlsafe(20)[:32]
            fresh.save(update_fields=["share_token"])
        return fresh.share_token


def unshare(experiment: Experiment) -> None:
    """Disable the link at once; a later one will be different."""
    Experiment.objects.filter(pk=experiment.pk).update(share_token=None)


def delete(experiment: Experiment) -> None:
    """Delete it with all its runs; a worker that executes one of them stops when it next reports."""
    with transaction.atomic():
        queue.withdraw(RUN, experiment.runs.values_list("pk", flat=True))
        queue.withdraw(READ, [experiment.pk])
        experiment.delete()
