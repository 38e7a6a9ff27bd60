"""Public pages of top lists, and the page where volunteers choose whether they are in them."""

from __future__ import annotations

from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods, require_safe

from credit.models import App
from extras.top_lists import consent, reads
from extras.top_lists.forms import ListingForm
from portal.people.access import signed_in


@require_safe
def volunteers(request: HttpRequest) -> HttpResponse:
    """Which volunteers who agreed to be shown have the most credit?"""
    choice = reads.read_choice(request.GET.dict(), has_apps=True)
    named = {"app": choice.app.name} if choice.app is not None else {"by": choice.by}
    context = {
        "choice": choice,
        "page": reads.volunteers(choice),
        "apps": App.objects.only("name", "user_friendly_name").order_by("user_friendly_name", "pk"),
        "query": urlencode(named),
    }
    return render(request, "top_lists/volunteers.html", context)


@require_safe
def teams(request: HttpRequest) -> HttpResponse:
    """Which teams have the most credit?"""
    choice = reads.read_choice(request.GET.dict())
    context = {"choice": choice, "page": reads.teams(choice), "query": urlencode({"by": choice.by})}
    return render(request, "top_lists/teams.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def choose(request: HttpRequest) -> HttpResponse:
    """May everybody see what you did for this project?"""
    user = signed_in(request)
    listed = consent.read(user)
    initial = {"is_shown": listed is not None, "shown_name": listed.shown_name if listed else ""}
    form = ListingForm(request.POST if request.method == "POST" else None, initial=initial)
    if request.method == "POST" and "is_shown" not in request.POST:
        # Whatever else was entered: nothing may prevent anybody from withdrawing.
        consent.withdraw(user, timezone.now())
        messages.success(request, gettext("Saved. You are in no top list."))
        return redirect("top_lists_consent")
    if form.is_valid():
        consent.give(user, form.cleaned_data["shown_name"], timezone.now())
        messages.success(request, gettext("Saved. You are shown in this project’s top lists."))
        return redirect("top_lists_consent")
    context = {"form": form, "wording": consent.TOP_LISTS.shown, "listed": listed}
    status = 422 if form.is_bound else 200
    return render(request, "top_lists/consent.html", context, status=status)
