"""Who looks at an experiment, and what they may do with it."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from emulator.models import Experiment
from emulator.pages.access import share_url


def is_owner(request: HttpRequest, found: Experiment) -> bool:
    """Whether the experiment is the visitor's own."""
    return request.user.is_authenticated and found.owner_id == request.user.pk


def of_the_visitor(request: HttpRequest, found: Experiment) -> dict[str, Any]:
    """The part of a page's context about who looks at it: whether they own it or may copy it, and its link."""
    return {
        "is_owner": is_owner(request, found),
        "may_fork": request.user.is_authenticated and not is_owner(request, found),
        "share_url": share_url(found),
        "nforks": found.forks.count(),
    }
