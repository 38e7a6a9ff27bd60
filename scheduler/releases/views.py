"""The page on which a volunteer agrees to test new versions."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods

from portal.people.access import signed_in
from scheduler.models import BetaTester


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def testing(request: HttpRequest) -> HttpResponse:
    """Do you want to test new programs?"""
    user = signed_in(request)
    if request.method == "POST":
        if "agrees" in request.POST:
            BetaTester.objects.get_or_create(user=user)
            messages.success(request, gettext("Your computers may now get programs that are still being tested."))
        else:
            BetaTester.objects.filter(user=user).delete()
            messages.success(request, gettext("Your computers only get released programs."))
        return redirect("testing")
    return render(request, "scheduler/testing.html", {"agrees": BetaTester.objects.filter(user=user).exists()})
