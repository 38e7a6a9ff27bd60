"""The page where a volunteer has a login token made."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from portal.people.access import signed_in
from scheduler.web_rpcs import login_tokens


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
@login_required
def first_start(request: HttpRequest) -> HttpResponse:
    """Log a new client in without a password."""
    user = signed_in(request)
    token = login_tokens.make(user, timezone.now()) if request.method == "POST" else ""
    return render(request, "scheduler/first_start.html", {"token": token, "user_id": user.pk})
