"""The page of the consents that a volunteer gave and withdrew."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from portal.people import consents
from portal.people.access import signed_in


@require_safe
@login_required
def consent_history(request: HttpRequest) -> HttpResponse:
    """Show what the volunteer agreed to, and when."""
    user = signed_in(request)
    context = {
        "standing": consents.standing(user),
        "history": consents.history(user),
        "shown": consents.HISTORY_SHOWN,
    }
    return render(request, "portal/consents.html", context)
