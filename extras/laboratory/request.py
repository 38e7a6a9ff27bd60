"""Start experiments, share and delete them. Anything that counts against a limit locks the owner's row first."""

from __future__ import annotations

import secrets
from typing import Final

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext

from extras.laboratory.models import CreditExperiment
from extras.laboratory.trials.experiment import Experiment
from portal.models import User
from portal.requested_work import queue
from portal.templatetags.display import localised

KIND: Final = "credit_experiment"
MAX_UNFINISHED: Final = 4
MAX_KEPT: Final = 100
VOLUNTEER_JOBS: Final = 200_000
OPERATOR_JOBS: Final = 4_000_000
DOCUMENT_SECS: Final = 300
"""Processor time of the document's goals, for one rule set and one population."""


class ExperimentRefusedError(Exception):
    """The request is not possible; the message says why, and what to do."""


@transaction.atomic
def ask(owner: User, title: str, experiment: Experiment, *, is_operator: bool) -> CreditExperiment:
    """Store the experiment and queue it. Raises ExperimentRefusedError where a limit is reached.

    Only operators may measure the document's goals, which takes minutes of processor time for each rule set.
    """
    User.objects.select_for_update(no_key=True).only("pk").get(pk=owner.pk)
    own = CreditExperiment.objects.filter(owner=owner)
    # Not those that the queue gave up
    unfinished = queue.standings(KIND, own.filter(finished_at=None).values_list("pk", flat=True), timezone.now())
    if len(unfinished) >= MAX_UNFINISHED:
        raise ExperimentRefusedError(
            gettext("You have %(number)s unfinished experiments. Wait until one is finished, or delete one.")
            % {"number": MAX_UNFINISHED}
        )
    if own.count() >= MAX_KEPT:
        raise ExperimentRefusedError(
            gettext("You have %(number)s experiments, which is the maximum. Delete one first.") % {"number": MAX_KEPT}
        )
    most = OPERATOR_JOBS if is_operator else VOLUNTEER_JOBS
    if not experiment.is_document and experiment.total_jobs > most:
        raise ExperimentRefusedError(
            gettext(
                "That makes %(number)s simulated jobs; the limit is %(most)s. Choose fewer jobs, populations or rules."
            )
            % {"number": localised(f"{experiment.total_jobs:,}"), "most": localised(f"{most:,}")}
        )
    if experiment.is_document:
        _check_document(experiment, is_operator=is_operator)
    made = CreditExperiment.objects.create(owner=owner, title=title[:100], settings=experiment.as_json())
    queue.ask(owner.pk, KIND, [made.pk])
    return made


def _check_document(experiment: Experiment, *, is_operator: bool) -> None:
    if not is_operator:
        raise ExperimentRefusedError(
            gettext("Only operators may measure the goals of the document, because it takes minutes.")
        )
    number = len(experiment.variants) * experiment.nseeds
    most = max(1, settings.CREDIT_LABORATORY_SECS_MAX // DOCUMENT_SECS)
    if number > most:
        raise ExperimentRefusedError(
            gettext(
                "The document’s goals take about %(minutes)s minutes for each rule set and population. You chose "
                "%(number)s of these; the limit is %(most)s. Choose fewer, or use manage.py credit_report."
            )
            % {"minutes": DOCUMENT_SECS // 60, "number": number, "most": most}
        )


def share(experiment: CreditExperiment) -> None:
    """Create the link that gives read access; it cannot be guessed."""
    with transaction.atomic():
        fresh = CreditExperiment.objects.select_for_update().get(pk=experiment.pk)
        if fresh.share_token is None:
            fresh.share_token = secrets.token_urlsafe(20)[:32]
            fresh.save(update_fields=["share_token"])


def unshare(experiment: CreditExperiment) -> None:
    """Disable the link at once; a later one will be different."""
    CreditExperiment.objects.filter(pk=experiment.pk).update(share_token=None)


def delete(experiment: CreditExperiment) -> None:
    """Delete it; a worker that computes it stops at its next progress report."""
    with transaction.atomic():
        queue.withdraw(KIND, [experiment.pk])
        experiment.delete()


def may_be_shared(experiment: CreditExperiment) -> bool:
    """Whether its link works: operators' experiments always; volunteers' while the laboratory is public."""
    return settings.CREDIT_LABORATORY_PUBLIC or experiment.owner.has_perm("laboratory.change_creditexperiment")


def share_url(experiment: CreditExperiment) -> str:
    """Return the link by which it is shared; empty if it is not, or if the link does not work."""
    if experiment.share_token is None or not may_be_shared(experiment):
        return ""
    return f"{settings.SITE_URL.rstrip('/')}/laboratory/shared/{experiment.share_token}/"
