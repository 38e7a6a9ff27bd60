"""The page where a volunteer agrees to test new versions."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods

from portal.people.access import signed_in
from scheduler.models import BetaTester
from scheduler.releases import testers


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def testing(request: HttpRequest) -> HttpResponse:
    """Ask whether the volunteer wants to test new programs."""
    user = signed_in(request)
    if request.method == "POST":
        testers.choose(user, "agrees" in request.POST, timezone.now())
        if "agrees" in request.POST:
            messages.success(request, gettext("Your computers may now get programs that are still being tested."))
        else:
            messages.success(request, gettext("Your computers only get released programs."))
        return redirect("testing")
    context = {"agrees": BetaTester.objects.filter(user=user).exists(), "wording": testers.TESTING.shown}
    return render(request, "scheduler/testing.html", context)
