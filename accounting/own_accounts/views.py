"""The page of a volunteer's own account at a project: its state, and the ways to one."""

from __future__ import annotations

from typing import Any

from allauth.account.internal.flows.reauthentication import is_reauthentication_required
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from accounting.models import OwnAccount, Project, ProjectProfile, UserProject
from accounting.own_accounts import requests
from accounting.own_accounts.forms import AccountKeyForm, LoginForm, NewAccountForm
from accounting.own_accounts.requests import AccountRequest
from accounting.wire.project_config import ProjectConfig, from_json
from portal.languages.sentences import sentence
from portal.models import User
from portal.people.access import signed_in
from portal.people.change_mails import tell_of_change
from portal.people.fresh_login import needs_fresh_login, password_address
from portal.people.security_events import source_of
from portal.sign_in.throttle import PROJECT_ACCOUNTS_PER_HOUR, Throttled, admit_project_account


@needs_fresh_login()
@sensitive_post_parameters("password", "account_key")
@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def own_account(request: HttpRequest, pk: int) -> HttpResponse:
    """Which account do my computers work with at this project, and does it work?"""
    user = signed_in(request)
    project = Project.objects.filter(pk=pk, is_active=True).first()
    if project is None or not project.has_own_accounts:
        raise Http404("no project with own accounts")
    forms = _forms(user, _config(project), request.POST.get("action", ""), request.POST)
    if request.method != "POST":
        return _page(request, project, forms)
    return _changed(request, user, project, forms)


def _changed(request: HttpRequest, user: User, project: Project, forms: dict[str, Any]) -> HttpResponse:
    action = request.POST.get("action", "")
    if action == "remove":
        requests.remove(user, project)
        messages.success(request, _("The key was removed. Your computers get no new account there."))
        return redirect("own_account", project.pk)
    account_request = _read_request(request, user, project, forms)
    if account_request is None:
        return _page(request, project, forms, status=422)
    try:
        admit_project_account(user.pk)
    except Throttled:
        text = _("You have sent %(number)s requests to projects within an hour. Try again later.")
        messages.error(request, text % {"number": PROJECT_ACCOUNTS_PER_HOUR})
        return redirect("own_account", project.pk)
    requests.ask(user, project, account_request)
    what = format_lazy(gettext_lazy("An account at {project} was entered for your computers."), project=project.name)
    tell_of_change(user, what, source_of(request))
    return redirect("own_account", project.pk)


def _read_request(request: HttpRequest, user: User, project: Project, forms: dict[str, Any]) -> AccountRequest | None:
    action = request.POST.get("action", "")
    if action == "take_over":
        host = request.POST.get("host", "")
        is_number = host.isascii() and host.isdigit() and len(host) < 19
        key = requests.reported_key(user, project, int(host)) if is_number else None
        if key is None:
            messages.error(request, _("This computer does not report an account of yours there any more."))
        return AccountRequest(key=key) if key is not None else None
    form = forms.get(action)
    if form is None or not form.is_valid():
        return None
    account_request: AccountRequest = form.request()
    return account_request


def _config(project: Project) -> ProjectConfig:
    profile = ProjectProfile.objects.filter(project=project).first()
    return from_json(profile.said) if profile is not None and profile.said else ProjectConfig()


def _forms(user: User, config: ProjectConfig, action: str, data: Any) -> dict[str, Any]:
    """Return the forms by action; the submitted one has its entries."""
    sent = {action: data}
    forms: dict[str, Any] = {
        "find": LoginForm(config, sent.get("find"), login=user.email),
        "create": NewAccountForm(config, sent.get("create"), login=user.email, name=user.name),
        "key": AccountKeyForm(sent.get("key"), auto_id="key_%s"),
    }
    if config.account_creation_disabled or config.client_account_creation_disabled or config.invite_code_required:
        del forms["create"]
    return forms


def _page(request: HttpRequest, project: Project, forms: dict[str, Any], status: int = 200) -> HttpResponse:
    user = signed_in(request)
    account = OwnAccount.objects.filter(user=user, project=project).first()
    choice = UserProject.objects.filter(user=user, project=project).first()
    config = _config(project)
    needs_password = is_reauthentication_required(request, app="portal")
    context = {
        "project": project,
        "account": account,
        "reason": sentence(account.reason) if account is not None else "",
        "has_key": choice is not None and bool(choice.account_key),
        "estimated_micro": choice.total_ec if choice is not None else 0,
        "forms": forms,
        "sent": request.POST.get("action", ""),
        "terms": config.terms_of_use,
        "is_unencrypted": not project.master_url.startswith("https://"),
        "reported": requests.reported_keys(user, project),
        "asks_password": password_address(request.path) if needs_password else "",
    }
    is_part = request.headers.get("HX-Request") == "true" and request.method == "GET"
    template = "accounting/_own_account.html" if is_part else "accounting/own_account.html"
    response = render(request, template, context, status=status)
    response.headers["Vary"] = "Cookie, HX-Request"
    response.headers["Cache-Control"] = "private, no-store"
    return response
