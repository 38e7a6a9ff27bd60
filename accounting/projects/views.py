"""A volunteer's projects: chosen by hand or by keywords; and the page of one project."""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_safe

from accounting.choosing.choices import ChoiceRefused, choose_keywords, choose_projects
from accounting.choosing.reads import read_selection_of_all
from accounting.projects.forms import chosen_shares, share_forms, shares_for_later, show_refusal
from accounting.projects.keywords import MAYBE, NO, YES, answers_of_form, read_keywords
from accounting.projects.public import read_subjects
from accounting.projects.reads import read_account_totals, read_project_page, read_settled_parts
from portal.people.access import own_hosts, signed_in

CORRECT_A_SHARE = _("Nothing was saved. Please correct the share below.")


@require_http_methods(["GET", "HEAD", "POST"])
def projects(request: HttpRequest) -> HttpResponse:
    """Which projects do my computers work for, and at what shares? For strangers: which are there?"""
    if not request.user.is_authenticated:
        if request.method == "POST":
            return redirect_to_login(request.get_full_path())
        return render(request, "accounting/projects_public.html", {"subjects": read_subjects()})
    user = signed_in(request)
    selection = read_selection_of_all(user, timezone.now())
    forms = share_forms(selection, request.POST if request.method == "POST" else None)
    problem = ""
    if request.method == "POST":
        if "all" in request.POST or all([form.is_valid() for form in forms]):
            shares, later = ({}, {}) if "all" in request.POST else (chosen_shares(forms), shares_for_later(forms))
            try:
                choose_projects(user, shares, later)
            except ChoiceRefused as refusal:
                problem = str(CORRECT_A_SHARE) if show_refusal(refusal, forms) else str(refusal)
            else:
                messages.success(request, _projects_saved(len(shares)))
                return redirect("projects")
        else:
            problem = str(CORRECT_A_SHARE)
    parts = read_settled_parts(user)
    context = {
        "selection": selection,
        "rows": [(form, parts.get(form.project.pk)) for form in forms],
        "ended": [
            (project, parts[id_])
            for id_, project in selection.projects.items()
            if not project.is_active and id_ in parts
        ],
        "across": read_account_totals(user),
        "problem": problem,
        "repeat_micro_secs": settings.AM_REPEAT_SECS * 1_000_000,
    }
    return render(request, "accounting/projects.html", context)


@require_safe
@login_required
def project(request: HttpRequest, pk: int) -> HttpResponse:
    """What is this project, and what is my part in it?"""
    page = read_project_page(signed_in(request), pk, timezone.now())
    if page is None:
        raise Http404("no such project")
    return render(request, "accounting/project.html", page)


def _projects_saved(chosen: int) -> str:
    if not chosen:
        return gettext("Saved. Your subjects decide which projects your computers work for.")
    text = ngettext(
        "Saved. Your computers work for the project that you chose.",
        "Saved. Your computers work for the %(number)s projects that you chose.",
        chosen,
    )
    return text % {"number": chosen}


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def keywords(request: HttpRequest) -> HttpResponse:
    """What do I want to work for, and what not?"""
    user = signed_in(request)
    problem = ""
    if request.method == "POST":
        yes, no = answers_of_form(request.POST)
        try:
            choose_keywords(user, yes, no)
        except ChoiceRefused as refusal:
            problem = str(refusal)
        else:
            messages.success(request, _keywords_saved(len(yes), len(no)))
            # A new volunteer connects a computer next.
            return redirect("keywords" if own_hosts(user).exists() else "connect")
    context = {
        "subjects": read_keywords(user),
        "problem": problem,
        "answers": ((YES, gettext("Yes")), (MAYBE, gettext("Maybe")), (NO, gettext("No"))),
        "repeat_micro_secs": settings.AM_REPEAT_SECS * 1_000_000,
    }
    return render(request, "accounting/keywords.html", context)


def _keywords_saved(yes: int, no: int) -> str:
    if not yes and not no:
        return gettext("Saved. All subjects rank equally, and your computers work on them in turn.")
    text = gettext("Saved: yes to %(yes)s, no to %(no)s. This takes effect at the next sync of each computer.")
    return text % {"yes": yes, "no": no}
