"""The page where a volunteer chooses a user name to log in with."""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import IntegrityError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from portal.people.access import signed_in
from portal.people.change_mails import tell_of_change
from portal.people.pages.forms import LoginNameForm
from portal.people.security_events import source_of


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def login_name(request: HttpRequest) -> HttpResponse:
    """Show and change the user name that the volunteer logs in with."""
    if not settings.LOGIN_BY_USER_NAME:
        raise Http404
    user = signed_in(request)
    form = LoginNameForm(user, request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            form.save()
        except IntegrityError:
            form.add_error("name", gettext("Somebody has this user name, or one that looks like it."))
        else:
            tell_of_change(user, _("The user name of your account was changed."), source_of(request))
            messages.success(request, gettext("Saved."))
            return redirect("login_name")
    return render(request, "portal/login_name.html", {"form": form}, status=422 if form.errors else 200)
