"""Pages of the account that allauth does not have: the keys of the volunteer's BOINC clients."""

from __future__ import annotations

import datetime as dt
from typing import Final

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from portal.models import ClientKey
from portal.people.access import get_own_key, signed_in
from portal.people.accounts import revoke_all_client_keys, revoke_client_key

REVOKED_SHOWN: Final = 20
REVOKED_SINCE: Final = dt.timedelta(days=90)


@require_safe
@login_required
def keys(request: HttpRequest) -> HttpResponse:
    """Which clients can report as me, and how do I shut one out?"""
    own = ClientKey.objects.filter(user=signed_in(request)).select_related("host")
    since = timezone.now() - REVOKED_SINCE
    context = {
        "keys": list(own.filter(revoked_at=None)),
        "revoked": list(own.filter(revoked_at__gte=since).order_by("-revoked_at")[:REVOKED_SHOWN]),
    }
    return render(request, "portal/keys.html", context)


@require_POST
@login_required
def revoke_key(request: HttpRequest, pk: int) -> HttpResponse:
    """Revoke one key."""
    key = get_own_key(signed_in(request), pk)
    revoke_client_key(signed_in(request), key.pk)
    messages.success(request, f"The key {key.hint}… is revoked.")
    return redirect("keys")


@require_POST
@login_required
def revoke_keys(request: HttpRequest) -> HttpResponse:
    """Revoke all keys at once."""
    number = revoke_all_client_keys(signed_in(request))
    messages.success(request, f"{number} keys are revoked." if number != 1 else "The key is revoked.")
    return redirect("keys")
