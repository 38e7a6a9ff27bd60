"""The page of the REST API's tokens: create, list and revoke them."""

from __future__ import annotations

import datetime as dt
from typing import Final

from allauth.account.adapter import get_adapter
from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods, require_POST

from portal.models import ApiToken, User
from portal.people.access import signed_in
from portal.people.api_tokens import (
    MAX_TOKENS_PER_USER,
    TooManyTokens,
    issue_token,
    replace_token,
    revoke_token,
    valid_tokens,
)
from portal.people.fresh_login import needs_fresh_login
from portal.people.security_events import source_of

_LIFETIMES: Final = {"30": _("30 days"), "365": _("1 year"), "": _("until I revoke it")}


class TokenForm(forms.Form):
    """Create a token."""

    name = forms.CharField(
        label=_("What is it for?"),
        max_length=100,
        help_text=_("So that you recognise it later, for example “spreadsheet”."),
    )
    scopes = forms.MultipleChoiceField(
        label=_("It gives access to"),
        choices=ApiToken.Scope.choices,
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": _("Choose at least one thing that the token gives access to.")},
    )
    days = forms.ChoiceField(
        label=_("It is valid for"), choices=list(_LIFETIMES.items()), required=False, initial="365"
    )

    @property
    def lifetime(self) -> dt.timedelta | None:
        days = self.cleaned_data["days"]
        return dt.timedelta(days=int(days)) if days else None


@needs_fresh_login(keeps_form=True)
@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def tokens(request: HttpRequest) -> HttpResponse:
    """Show the tokens of the REST API, and the form that creates one; a new token is shown only this once."""
    user = signed_in(request)
    form = TokenForm(request.POST if request.method == "POST" else None)
    token = None
    if request.method == "POST" and form.is_valid():
        try:
            token = issue_token(
                user,
                name=form.cleaned_data["name"],
                scopes=form.cleaned_data["scopes"],
                lifetime=form.lifetime,
                source=source_of(request),
            )
            tell_of_token(user, form.cleaned_data["name"], form.cleaned_data["scopes"])
            form = TokenForm()
        except TooManyTokens:
            form.add_error(
                None,
                gettext("You already have %(number)s tokens. Revoke one that you do not need.")
                % {"number": MAX_TOKENS_PER_USER},
            )
    return _page(request, form, token)


def _page(request: HttpRequest, form: TokenForm, token: str | None) -> HttpResponse:
    """The page of tokens, with the one that was just created."""
    # Those without a scope belong to other pages.
    tokens = list(valid_tokens().filter(user=signed_in(request)).exclude(scopes=[]))
    context = {"form": form, "token": token, "tokens": tokens, "now": timezone.now()}
    response = render(request, "portal/tokens.html", context, status=200 if not form.errors else 422)
    # The page may contain the new token.
    response.headers["Cache-Control"] = "no-store"
    return response


def tell_of_token(user: User, name: str, scopes: list[str]) -> None:
    """Mail the user about a new token: somebody else may have created it."""
    # The labels become words where the mail is rendered, in its reader's language.
    words = [ApiToken.Scope(scope).label for scope in scopes]
    get_adapter().send_notification_mail("account/email/token_made", user, {"token_name": name, "scopes": words})


@needs_fresh_login(keeps_form=True)
@require_POST
@login_required
def replace(request: HttpRequest, pk: int) -> HttpResponse:
    """Replace a token by a new one, for instance after somebody has seen it."""
    user = signed_in(request)
    token = replace_token(user, pk, source_of(request))
    if token is None:
        raise Http404
    old = ApiToken.objects.get(user=user, pk=pk)
    tell_of_token(user, old.name, old.scopes)
    return _page(request, TokenForm(), token)


@require_POST
@login_required
def revoke(request: HttpRequest, pk: int) -> HttpResponse:
    """Revoke one token."""
    token = revoke_token(signed_in(request), pk, source_of(request))
    if token is None:
        raise Http404
    messages.success(request, gettext("The token “%(name)s” is revoked.") % {"name": token.name})
    return redirect("tokens")
