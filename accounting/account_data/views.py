"""Pages of a volunteer's own data: a copy of all of it, and closing the account."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

from allauth.account.adapter import get_adapter
from allauth.account.fields import PasswordField
from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import logout
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounting.account_data import copies
from accounting.exchange import made_files
from portal.models import User
from portal.people.access import signed_in
from portal.people.change_mails import tell_of_change
from portal.people.deletion import GRACE, OperatorCannotLeave, ask_deletion
from portal.people.fresh_login import needs_fresh_login
from portal.people.security_events import source_of
from portal.templatetags.display import day


class DeletionForm(forms.Form):
    """The password, asked for again."""

    password = PasswordField(label=_("Your password"), autocomplete="current-password")

    def __init__(self, user: User, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(data)
        self.user = user

    def clean_password(self) -> str:
        password: str = self.cleaned_data["password"]
        if not get_adapter().reauthenticate(self.user, password):
            raise get_adapter().validation_error("incorrect_password")
        return password


def _confirm(request: HttpRequest, user: User, due_at: dt.datetime) -> None:
    """Notify the owner by mail, in case it was somebody else at their computer."""
    words = {
        "name": user.display_name,
        "due_at": due_at,
        "site_name": settings.SITE_NAME,
        "site_url": settings.SITE_URL,
    }
    get_adapter(request).send_mail("account/email/deletion_asked", user.email, words)


@require_safe
@login_required
def data(request: HttpRequest) -> HttpResponse:
    """The data stored about the user: request a copy, and close the account."""
    copy, standing = copies.read_copy(signed_in(request))
    context = {"copy": copy, "standing": standing, "grace_days": GRACE.days, "kept_days": made_files.KEPT.days}
    template = "accounting/_data_copy.html" if request.headers.get("HX-Request") == "true" else "accounting/data.html"
    response = render(request, template, context)
    response.headers["Vary"] = "Cookie, HX-Request"
    return response


@needs_fresh_login(keeps_form=True)
@require_POST
@login_required
def make_copy(request: HttpRequest) -> HttpResponse:
    """Have a copy made, and notify the owner by mail."""
    user = signed_in(request)
    _copy, is_new = copies.ask_copy(user)
    if is_new:
        tell_of_change(user, _("A copy of everything that is stored about you was requested."), source_of(request))
    return redirect("data")


@require_safe
@login_required
def download_copy(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Send a finished copy."""
    copy = copies.find_ready(signed_in(request), pk)
    if copy is None:
        raise Http404
    return made_files.sent(copy, f"cobblestone-{copy.asked_at:%Y-%m-%d}.zip")


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def delete_account(request: HttpRequest) -> HttpResponse:
    """Close the visitor's account: confirmed with the password, carried out after the grace period."""
    user = signed_in(request)
    form = DeletionForm(user, request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        try:
            due_at = ask_deletion(user)
        except OperatorCannotLeave:
            form.add_error(
                None,
                gettext("You are an operator of this site. Ask another operator to remove that role from you first."),
            )
        else:
            _confirm(request, user, due_at)
            logout(request)
            messages.success(
                request,
                gettext(
                    "Your account and its history will be deleted on %(date)s. If you change your mind, sign "
                    "in before then."
                )
                % {"date": day(due_at)},
            )
            return redirect("landing")
    context = {"form": form, "grace_days": GRACE.days}
    return render(request, "accounting/delete_account.html", context, status=422 if form.errors else 200)
