"""Asks for the password again before changes that a login left open must not allow; views declare them.

A view that gives lasting access to an account, or changes who has it, is declared with `needs_fresh_login`, an admin
class with an attribute of the same kind. For every other address that changes something,
tests/portal/web/test_fresh_logins.py gives the reason why it needs none.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from allauth.account import app_settings
from allauth.account.internal.flows.reauthentication import (
    STATE_SESSION_KEY,
    is_reauthentication_required,
    suspend_request,
)
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, resolve_url
from django.urls import reverse
from django.utils.deprecation import MiddlewareMixin
from django.utils.http import url_has_allowed_host_and_scheme, urlencode
from django.utils.translation import gettext

_View = TypeVar("_View", bound=Callable[..., Any])
_PASSWORD_PAGES: Final = frozenset({"account_reauthenticate", "mfa_reauthenticate", "mfa_reauthenticate_webauthn"})
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True, slots=True)
class FreshLogin:
    """Declares that a view's changes need a login within the last few minutes.

    ``keeps_form``: what was entered waits in the session for minutes, and is carried out after the password; not for
    forms with secrets. ``to_look``: showing the form needs it, too, so that nobody fills it in for nothing.
    """

    keeps_form: bool = False
    to_look: bool = False


def needs_fresh_login(*, keeps_form: bool = False, to_look: bool = False) -> Callable[[_View], _View]:
    """Declare it for a view, or for a method that is one."""

    def declare(view: _View) -> _View:
        view.fresh_login = FreshLogin(keeps_form, to_look)  # type: ignore[attr-defined]  # functools.wraps carries it outward
        return view

    return declare


def declaration_of(view: Callable[..., Any]) -> FreshLogin | None:
    """The declaration of the view, or of the admin class that it belongs to."""
    model_admin = getattr(view, "model_admin", None)
    declared: FreshLogin | None = getattr(view, "fresh_login", None) or getattr(model_admin, "fresh_login", None)
    return declared


def password_address(then: str) -> str:
    """The address that asks for the password; ``then``: the page that follows."""
    return f"{reverse('account_reauthenticate')}?{urlencode({REDIRECT_FIELD_NAME: then})}"


class FreshLoginMiddleware(MiddlewareMixin):
    """Asks for the password if the view declares that, and the login is too old."""

    def process_view(
        self, request: HttpRequest, view: Callable[..., Any], args: object, kwargs: object
    ) -> HttpResponse | None:
        _forget_abandoned(request)
        declared = declaration_of(view)
        if declared is None or not request.user.is_authenticated:
            return None
        is_look = request.method in _SAFE
        if (is_look and not declared.to_look) or not is_reauthentication_required(request, app="portal"):
            return None
        request.session.pop(STATE_SESSION_KEY, None)
        if is_look:
            return redirect(password_address(request.get_full_path()))
        if declared.keeps_form:
            response: HttpResponse = suspend_request(request, reverse("account_reauthenticate"))
            request.session[STATE_SESSION_KEY]["kept_at"] = time.time()
            return response
        messages.warning(
            request, gettext("Confirm that it is you first. Then fill in the form again: it was not saved.")
        )
        return redirect(password_address(_page_of_the_form(request)))


def _forget_abandoned(request: HttpRequest) -> None:
    """Drop a form that was sent long before the password is entered: its sender has given it up."""
    if request.resolver_match is None or request.resolver_match.url_name not in _PASSWORD_PAGES:
        return
    state = request.session.get(STATE_SESSION_KEY)
    if state is not None and time.time() - state.get("kept_at", 0.0) > app_settings.REAUTHENTICATION_TIMEOUT:
        del request.session[STATE_SESSION_KEY]


def _page_of_the_form(request: HttpRequest) -> str:
    before = request.headers.get("Referer", "")
    is_ours = url_has_allowed_host_and_scheme(before, {request.get_host()}, require_https=request.is_secure())
    return before if before and is_ours else resolve_url(settings.LOGIN_REDIRECT_URL)
