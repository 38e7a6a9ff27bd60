"""Who looks at an experiment, and what they may do with it."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from emulator.models import Experiment
from emulator.pages.access import share_url
from portal.people.access import signed_in


def of_the_visitor(request: HttpRequest, found: Experiment) -> dict[str, Any]:
    """The part of a page's context about who looks at it: whether they own it or may copy it, and its link."""
    user = signed_in(request) if request.user.is_authenticated else None
    return {
        "is_owner": user is not None and found.owner_id == user.pk,
        "may_fork": user is not None and found.owner_id != user.pk,
        "share_url": share_url(found),
        "nforks": found.forks.count(),
    }
