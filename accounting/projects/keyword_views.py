"""Subjects: what a volunteer's computers shall work for, or must not, by BOINC's keywords."""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from accounting.choosing.choices import ChoiceRefused, choose_keywords
from accounting.projects.keywords import MAYBE, NO, YES, answers_in, read_subjects
from portal.people.access import signed_in


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def keywords(request: HttpRequest) -> HttpResponse:
    """What do I want to work for, and what not?"""
    user = signed_in(request)
    problem = ""
    if request.method == "POST":
        yes, no = answers_in(request.POST)
        try:
            choose_keywords(user, yes, no)
        except ChoiceRefused as refusal:
            problem = str(refusal)
        else:
            messages.success(request, _saved(len(yes), len(no)))
            return redirect("keywords")
    context = {
        "subjects": read_subjects(user),
        "problem": problem,
        "answers": ((YES, "Yes"), (MAYBE, "Maybe"), (NO, "No")),
        "repeat_micro_secs": settings.AM_REPEAT_SECS * 1_000_000,
    }
    return render(request, "accounting/keywords.html", context)


def _saved(yes: int, no: int) -> str:
    if not yes and not no:
        return "Saved. Every subject is as good as the others; your computers take them in turn."
    return f"Saved: yes to {yes}, no to {no}. Your computers follow at their next contact."
