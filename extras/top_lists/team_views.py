"""The project's pages of teams. Only members who agreed to it are shown; joining requires signing in."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from credit.models import Team
from credit.teams import membership, reads
from extras.top_lists import reads as top_lists
from extras.top_lists.forms import TeamForm
from portal.people.access import signed_in


@require_safe
def teams(request: HttpRequest) -> HttpResponse:
    """Which teams are there, and which is mine?"""
    context: dict[str, Any] = {"teams": reads.search(request.GET.get("q", "")[:100]), "words": request.GET.get("q", "")}
    if request.user.is_authenticated:
        context["own"] = reads.team_of(signed_in(request))
    return render(request, "teams/teams.html", context)


@require_safe
def team(request: HttpRequest, pk: int) -> HttpResponse:
    """What is this team, who founded it, and which of its members agreed to be shown?"""
    team_shown = get_object_or_404(Team, pk=pk)
    choice = top_lists.read_choice(request.GET.dict())
    context: dict[str, Any] = {
        "team": team_shown,
        "sums": reads.sums([team_shown])[team_shown.pk],
        "founder": top_lists.founder(team_shown),
        "choice": choice,
        "page": top_lists.members(team_shown, choice),
    }
    if request.user.is_authenticated:
        user = signed_in(request)
        context["is_member"] = reads.team_of(user) == team_shown
        if team_shown.founder_id == user.pk:
            context["others"] = reads.others_in(team_shown, user)
    return render(request, "teams/team.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def new(request: HttpRequest) -> HttpResponse:
    """Found a team."""
    form = TeamForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        try:
            made = membership.found(signed_in(request), form.instance)
        except membership.TeamRefused as refused:
            form.add_error("name", str(refused))
        else:
            return redirect("team", made.pk)
    return render(request, "teams/new.html", {"form": form})


@require_POST
@login_required
def change(request: HttpRequest, pk: int) -> HttpResponse:
    """Join, leave, or hand on a team."""
    user = signed_in(request)
    try:
        if "join" in request.POST:
            membership.join(user, pk)
        elif "leave" in request.POST and reads.team_of(user) == get_object_or_404(Team, pk=pk):
            membership.leave(user)
        elif (member := request.POST.get("hand_on", "")).isdecimal():
            membership.hand_on(user, int(member[:18]))
    except membership.TeamRefused as refused:
        messages.error(request, str(refused))
        return redirect("teams")
    return redirect("team", pk)
