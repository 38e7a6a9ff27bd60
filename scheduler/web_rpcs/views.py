"""The page where a volunteer has a login token made."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from portal.people.access import signed_in
from portal.people.change_mails import tell_of_change
from portal.people.fresh_login import needs_fresh_login
from portal.people.security_events import source_of
from scheduler.web_rpcs import login_tokens


@needs_fresh_login(keeps_form=True)
@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@login_required
def first_start(request: HttpRequest) -> HttpResponse:
    """Log a new client in without a password."""
    user = signed_in(request)
    list_id = settings.BOINC_LIST_ID
    token = ""
    if request.method == "POST" and list_id:
        token = login_tokens.make(user, timezone.now())
        tell_of_change(user, gettext_lazy("A login token for a BOINC client was created."), source_of(request))
    # BOINC's client looks for these after two underscores in the name of its installer (client/acct_setup.cpp).
    name_end = f"__{list_id}_{user.pk}_{token}" if token else ""
    return render(request, "scheduler/first_start.html", {"is_listed": bool(list_id), "name_end": name_end})
