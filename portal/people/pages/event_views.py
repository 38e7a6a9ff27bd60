"""The page of an account's security events."""

from __future__ import annotations

from typing import Final

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from portal.languages.sentences import sentence
from portal.models import SecurityEvent, User
from portal.people.access import signed_in
from portal.people.security_events import EVENTS_KEPT, of_account

EVENTS_SHOWN: Final = 100


@require_safe
@login_required
def events(request: HttpRequest) -> HttpResponse:
    """Show the newest events and, separately, the newest failed logins."""
    user = signed_in(request)
    context = {
        "lists": [
            (gettext("Logins and changes"), _lines(user, False)),
            (gettext("Failed logins"), _lines(user, True)),
        ],
        "shown": EVENTS_SHOWN,
        "kept_days": EVENTS_KEPT.days,
    }
    return render(request, "portal/events.html", context)


def _lines(user: User, kinds_of_failure: bool) -> list[tuple[SecurityEvent, str]]:
    """Events, each with its detail in the reader's language."""
    return [(event, sentence(event.detail)) for event in of_account(user, kinds_of_failure, EVENTS_SHOWN)]
