"""The visitor of an experiment, and their rights."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from emulator.models import Experiment
from emulator.pages.access import share_url
from emulator.pages.examples import example_of
from emulator.pages.texts.preset_texts import texts_of


def is_owner(request: HttpRequest, experiment: Experiment) -> bool:
    """Whether the experiment is the visitor's own."""
    return request.user.is_authenticated and experiment.owner_id == request.user.pk


def of_the_visitor(request: HttpRequest, experiment: Experiment) -> dict[str, Any]:
    """Return the part of a page's context about the visitor: whether they own it or may copy it, and its links; for an
    example its description.
    """
    example = example_of(experiment)
    if example is not None:
        _title, shows = texts_of(example)
        return {"example": example, "shows": shows, "page_url": reverse("emulator_example", args=[example.key])}
    mine = is_owner(request, experiment)
    return {
        "is_owner": mine,
        "may_fork": request.user.is_authenticated and not mine,
        "page_url": reverse("experiment", args=[experiment.pk]) if mine else share_url(experiment),
        "share_url": share_url(experiment),
        "nforks": experiment.forks.count(),
    }
