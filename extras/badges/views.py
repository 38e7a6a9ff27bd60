"""A volunteer's badges, which only they see."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from extras.badges.reads import read_page
from portal.people.access import signed_in


@require_safe
@login_required
def badges(request: HttpRequest) -> HttpResponse:
    """Which badges have I earned, and when?"""
    return render(request, "badges/badges.html", {"page": read_page(signed_in(request))})
