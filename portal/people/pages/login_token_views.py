"""The page where a volunteer creates a login token."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from portal.people import login_tokens
from portal.people.access import signed_in
from portal.people.change_mails import tell_of_change
from portal.people.fresh_login import needs_fresh_login
from portal.people.security_events import source_of


@needs_fresh_login(keeps_form=True)
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@login_required
def login_token(request: HttpRequest) -> HttpResponse:
    """Create a token that logs a client in without the password."""
    user = signed_in(request)
    token = ""
    if request.method == "POST":
        token = login_tokens.make(user, timezone.now())
        tell_of_change(user, gettext_lazy("A login token for a BOINC client was created."), source_of(request))
    # BOINC's client looks for these after two underscores in its installer's name (client/acct_setup.cpp).
    list_id = settings.BOINC_LIST_ID if "project" in settings.ROOMS else 0
    name_end = f"__{list_id}_{user.pk}_{token}" if token and list_id else ""
    return render(request, "portal/login_token.html", {"token": token, "name_end": name_end})
