"""Operators' pages: add a project by its URL, set it up step by step, see projects' problems.

They are part of the admin (accounting/admin.py), which lets in operators only. Each names the right that it needs.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from functools import wraps
from typing import Any, Final

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounting.models import Project
from accounting.project_setup import accounts, asking, reads, steps
from accounting.project_setup.adding import AlreadyThere, add_project
from accounting.project_setup.changes import TAKEN_OVER, described, master_url_problem, states
from accounting.project_setup.forms import FoundForm, KeyForm, LookUpForm, SignatureForm, UrlForm
from accounting.projects.addresses import project_at
from accounting.wire.project_config import from_json
from portal.fetch.fetcher import Version
from portal.languages.sentences import sentence
from portal.people.access import signed_in

ADD: Final = permission_required("accounting.add_project", raise_exception=True)
CHANGE: Final = permission_required("accounting.change_project", raise_exception=True)
VIEW: Final = permission_required("accounting.view_project", raise_exception=True)
# In the session, between the two pages of adding
_FOUND: Final = "project_found"

View = Callable[..., HttpResponse]


def _page(request: HttpRequest, template: str, title: str, **context: Any) -> HttpResponse:
    around = admin.site.each_context(request) | {"title": title, "opts": Project._meta}
    return render(request, f"accounting/project_setup/{template}.html", around | context)


def _to_set_up(project_id: int) -> HttpResponse:
    return redirect("admin:accounting_project_set_up", project_id)


@ADD
@require_http_methods(["GET", "HEAD", "POST"])
def add_by_url(request: HttpRequest) -> HttpResponse:
    """Which project? Asks it about itself."""
    form = UrlForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        url = form.cleaned_data["url"]
        there = project_at(url)
        if there is not None:
            messages.info(request, _("%(project)s is already on this site.") % {"project": there.name})
            return _to_set_up(there.pk)
        try:
            answer = asking.ask(url)
        except asking.AskFailed as problem:
            form.add_error("url", sentence(problem.message))
        else:
            assert answer.config is not None  # a full answer: no version was sent to compare with
            request.session[_FOUND] = {
                "typed": url,
                "said": answer.config.to_json(),
                "etag": answer.version.etag,
                "last_modified": answer.version.last_modified,
                "at": timezone.now().isoformat(),
            }
            return redirect("admin:accounting_project_found")
    return _page(request, "add_by_url", _("Add a project by its URL"), form=form)


@ADD
@require_http_methods(["GET", "HEAD", "POST"])
def found(request: HttpRequest) -> HttpResponse:
    """Show the project's answer, and choose what to take from it."""
    asked = request.session.get(_FOUND)
    if asked is None:
        return redirect("admin:accounting_project_add_by_url")
    config = from_json(asked["said"])
    form = FoundForm(config, asked["typed"], request.POST or None)
    if request.method == "POST" and not config.account_manager and form.is_valid():
        answer = asking.ConfigAnswer(config, Version(asked["etag"], asked["last_modified"]))
        try:
            project = add_project(form.chosen(), answer, dt.datetime.fromisoformat(asked["at"]))
        except AlreadyThere as problem:
            form.add_error("master_url", str(problem))
        else:
            del request.session[_FOUND]
            admin.site._registry[Project].log_addition(request, project, "Added by its URL.")
            messages.success(
                request, _("%(project)s was added. No computer is attached to it yet.") % {"project": project.name}
            )
            return _to_set_up(project.pk)
    return _page(
        request,
        "found",
        config.name or asked["typed"],
        form=form,
        rows=described(config),
        states=states(config),
        terms=config.terms_of_use,
        master_url_problem=master_url_problem(asked["typed"], config),
        is_account_manager=config.account_manager,
    )


@VIEW
@require_safe
def set_up(request: HttpRequest, pk: int) -> HttpResponse:
    """How far is the project set up, and what did it last answer?"""
    project = get_object_or_404(Project, pk=pk)
    return _show(request, project)


def _show(request: HttpRequest, project: Project, **more: forms.Form) -> HttpResponse:
    """Render the page of the set-up; ``more``: a form that needs a correction, by its name."""
    context = {
        "signature_form": SignatureForm(),
        "look_up_form": LookUpForm(),
        "key_form": KeyForm(),
        "may_change": request.user.has_perm("accounting.change_project"),
        **reads.read_set_up(project, signed_in(request)),
        **more,
    }
    return _page(request, "set_up", _("Set up %(project)s") % {"project": project.name}, **context)


def _step(what: str) -> Callable[[Callable[[HttpRequest, Project], str | HttpResponse]], View]:
    """Make a view that does one step by POST, logs it as ``what``, and returns to the set-up.

    The step returns its message, or a page if its form needs a correction. StepRefused and AccountProblem are shown.
    """

    def decorate(step: Callable[[HttpRequest, Project], str | HttpResponse]) -> View:
        @CHANGE
        @require_POST
        @wraps(step)
        def view(request: HttpRequest, pk: int) -> HttpResponse:
            project = get_object_or_404(Project, pk=pk)
            try:
                message = step(request, project)
            except steps.StepRefused as problem:
                messages.error(request, str(problem))
                return _to_set_up(pk)
            except accounts.AccountProblem as problem:
                messages.error(request, sentence(problem.message))
                return _to_set_up(pk)
            if isinstance(message, HttpResponse):
                return message
            if message:
                messages.success(request, message)
            if what:
                admin.site._registry[Project].log_change(request, project, what)
            return _to_set_up(pk)

        return view

    return decorate


@_step("")
def ask_now(request: HttpRequest, project: Project) -> str:
    if not asking.ask_again(project, timezone.now()):
        raise steps.StepRefused(_("The project could not be asked. The reason is shown below."))
    return _("The project was asked.")


@_step("Signed the URL.")
def sign(request: HttpRequest, project: Project) -> str | HttpResponse:
    if "here" in request.POST:
        steps.sign(project.pk, "")
        return _("The URL is signed.")
    form = SignatureForm(request.POST)
    if form.is_valid():
        try:
            steps.sign(project.pk, form.cleaned_data["signature"])
        except steps.StepRefused as refusal:
            form.add_error("signature", str(refusal))
        else:
            return _("The signature is valid and has been stored.")
    return _show(request, project, signature_form=form)


@sensitive_post_parameters("password")
@_step("Looked up the account key.")
def look_up(request: HttpRequest, project: Project) -> str | HttpResponse:
    form = LookUpForm(request.POST)
    if not form.is_valid():
        return _show(request, project, look_up_form=form)
    email = form.cleaned_data["email"].strip().lower()
    key = accounts.look_up_key(project, email, form.cleaned_data["password"])
    steps.store_account_key(project.pk, signed_in(request), key, email)
    text = _("The project returned the account key. It ends with …%(end)s and is stored encrypted.")
    return text % {"end": key[-4:]}


@sensitive_post_parameters("account_key")
@_step("Entered an account key.")
def enter_key(request: HttpRequest, project: Project) -> str | HttpResponse:
    form = KeyForm(request.POST)
    if not form.is_valid():
        return _show(request, project, key_form=form)
    steps.store_account_key(project.pk, signed_in(request), form.cleaned_data["account_key"])
    return _("The account key is stored encrypted.")


@_step("")
def try_it(request: HttpRequest, project: Project) -> str:
    key = steps.account_key(project, signed_in(request))
    if not key:
        raise steps.StepRefused(_("There is no account key to test."))
    now = timezone.now()
    if "scheduler" in request.POST:
        trial = accounts.try_scheduler(project, key, now)
    else:
        trial = accounts.try_account(project, key, now)
    if not trial.went_well:
        raise steps.StepRefused(sentence(trial.message))
    return sentence(trial.message)


@_step("Changed whether computers may be attached.")
def activate(request: HttpRequest, project: Project) -> str:
    is_active = "off" not in request.POST
    steps.set_active(project.pk, is_active)
    return _("Computers may be attached now.") if is_active else _("Computers are no longer attached.")


@_step("Applied changes from the project.")
def take_over(request: HttpRequest, project: Project) -> str:
    fields = TAKEN_OVER.intersection(request.POST.getlist("field"))
    if not fields:
        raise steps.StepRefused(_("Nothing was selected."))
    steps.take_over(project.pk, fields, request.POST.get("shown", ""))
    return _("The selected changes have been applied.")


@_step("")
def seen(request: HttpRequest, project: Project) -> str:
    steps.mark_seen(project.pk, request.POST.get("shown", ""))
    return _("Marked as seen. Nothing else was changed.")


@VIEW
@require_safe
def troubles(request: HttpRequest) -> HttpResponse:
    """Which project needs attention?"""
    return _page(request, "troubles", _("Project problems"), lines=reads.read_troubles(timezone.now()))


def urls() -> list[URLPattern]:
    """Return the addresses of the set-up, which the admin of projects puts before its own."""
    view = admin.site.admin_view
    pages = [
        path("add-by-url/", view(add_by_url), name="accounting_project_add_by_url"),
        path("add-by-url/found/", view(found), name="accounting_project_found"),
        path("trouble/", view(troubles), name="accounting_project_troubles"),
        path("<int:pk>/set-up/", view(set_up), name="accounting_project_set_up"),
    ]
    by_post = {
        "ask": ask_now,
        "sign": sign,
        "look-up": look_up,
        "key": enter_key,
        "try": try_it,
        "activate": activate,
        "take-over": take_over,
        "seen": seen,
    }
    return pages + [
        path(f"<int:pk>/set-up/{name}/", view(step), name=f"accounting_project_{name.replace('-', '_')}")
        for name, step in by_post.items()
    ]
