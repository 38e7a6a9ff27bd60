"""The page for adding many computers: limits, requests for more, and join tokens."""

from __future__ import annotations

from allauth.account.adapter import get_adapter
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from accounting.joining.forms import JoinTokenForm, LimitRequestForm
from accounting.joining.image_files import ImageFile, image_files
from portal.computers.limit_requests import request_limit
from portal.computers.new_hosts import read_limits
from portal.models import HostLimitRequest, JoinToken, User
from portal.people.access import signed_in
from portal.people.fresh_login import needs_fresh_login
from portal.people.join_tokens import (
    JoinTokenRefused,
    joinable_hosts,
    make_join_token,
    revoke_join_token,
    usable_tokens,
)
from portal.people.security_events import source_of


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
@needs_fresh_login(keeps_form=True)
def joining(request: HttpRequest) -> HttpResponse:
    """Show limits and join tokens, and the form that makes a token; a new one is shown only once."""
    user = signed_in(request)
    form = JoinTokenForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        try:
            made, token = make_join_token(
                user,
                group=form.cleaned_data["group"],
                max_hosts=form.cleaned_data["max_hosts"],
                lifetime=form.lifetime,
                source=source_of(request),
            )
        except JoinTokenRefused as refused:
            form.add_error("max_hosts", str(refused))
        else:
            # Somebody else may have made it.
            words = {"login": made.login, "group": made.group, "max_hosts": made.max_hosts}
            get_adapter().send_notification_mail("account/email/join_token_made", user, words)
            return _page(request, user, token_form=JoinTokenForm(), made=made, token=token)
    return _page(request, user, token_form=form)


@require_POST
@login_required
def request_more(request: HttpRequest) -> HttpResponse:
    """Ask the operators for more computers within a day."""
    user = signed_in(request)
    form = LimitRequestForm(request.POST)
    if not form.is_valid():
        return _page(request, user, limit_form=form)
    if request_limit(user, form.cleaned_data["hosts_per_day"], form.cleaned_data["reason"], timezone.now()):
        messages.success(request, _("Your request has been sent. You will get an e-mail when it is decided."))
    else:
        messages.error(request, _("You already have a request that waits to be decided."))
    return redirect("joining")


@require_POST
@login_required
def revoke(request: HttpRequest, pk: int) -> HttpResponse:
    """Revoke a join token."""
    token = revoke_join_token(signed_in(request), pk, source_of(request))
    if token is None:
        raise Http404
    text = _("The token for “%(group)s” is revoked. Computers that joined with it go on.")
    messages.success(request, text % {"group": token.group})
    return redirect("joining")


def _page(
    request: HttpRequest,
    user: User,
    *,
    token_form: JoinTokenForm | None = None,
    limit_form: LimitRequestForm | None = None,
    made: JoinToken | None = None,
    token: str = "",
) -> HttpResponse:
    now = timezone.now()
    token_form, limit_form = token_form or JoinTokenForm(), limit_form or LimitRequestForm()
    files: list[ImageFile] = image_files(made, token) if made is not None else []
    context = {
        "limits": read_limits(user, now),
        "joinable": joinable_hosts(user, now),
        "tokens": list(usable_tokens(now).filter(user=user)),
        "token_form": token_form,
        "limit_form": limit_form,
        "last_request": HostLimitRequest.objects.filter(user=user).first(),
        "made": made,
        "token": token,
        "command": f"boinccmd --acct_mgr attach {settings.SITE_URL} {made.login} {token}" if made is not None else "",
        "files": files,
    }
    is_wrong = bool(token_form.errors or limit_form.errors)
    response = render(request, "accounting/joining.html", context, status=422 if is_wrong else 200)
    # The page may have the new token in it.
    response.headers["Cache-Control"] = "no-store"
    return response
