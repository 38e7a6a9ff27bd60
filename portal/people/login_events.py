"""Reactions to logins and to changes by django-allauth: security events, the end of a requested deletion, and the end
of older logins when a second factor is added."""

from __future__ import annotations

from typing import Any, Final

from allauth.account import signals as account_signals
from allauth.mfa import signals as mfa_signals
from allauth.mfa.models import Authenticator
from django.contrib import messages
from django.contrib.auth.signals import user_logged_in, user_login_failed
from django.dispatch import receiver
from django.http import HttpRequest
from django.utils.translation import gettext

from portal.languages.messages import Message
from portal.models import LoginToken, User
from portal.people.api_tokens import revoke_all_tokens
from portal.people.deletion import cancel_deletion
from portal.people.security_events import Kind, log_event, record, source_of
from portal.people.staff import is_operator, second_factors
from portal.sign_in.sessions import end_sessions, note_browser


@receiver(user_logged_in)
def _logged_in(request: HttpRequest, user: User, **_: Any) -> None:
    source = source_of(request)
    note_browser(request.session, source.address, source.user_agent)
    record(user, Kind.LOGIN, source)
    if cancel_deletion(user):
        messages.success(request, gettext("Welcome back. Your account will not be deleted."), fail_silently=True)


@receiver(user_login_failed)
def _login_failed(credentials: dict[str, Any], request: HttpRequest | None = None, **_: Any) -> None:
    login = str(credentials.get("email") or credentials.get("username") or "").strip().lower()
    user = User.objects.filter(email=login).first() if "\0" not in login else None
    if user is None:
        log_event(Kind.LOGIN_FAILED, source_of(request))
    else:
        record(user, Kind.LOGIN_FAILED, source_of(request))


@receiver(account_signals.password_changed)
@receiver(account_signals.password_set)
def _password_changed(request: HttpRequest, user: User, **_: Any) -> None:
    record(user, Kind.PASSWORD_CHANGED, source_of(request))


@receiver(account_signals.password_reset)
def _password_reset(request: HttpRequest, user: User, **_: Any) -> None:
    record(user, Kind.PASSWORD_RESET, source_of(request))


@receiver(account_signals.email_changed)
def _email_changed(request: HttpRequest, user: User, **_: Any) -> None:
    record(user, Kind.EMAIL_CHANGED, source_of(request))


@receiver(mfa_signals.authenticator_added)
def _factor_added(request: HttpRequest, user: User, authenticator: Authenticator, **_: Any) -> None:
    source = source_of(request)
    record(user, Kind.FACTOR_ADDED, source, _factor(authenticator))
    if not second_factors(user).filter(pk=authenticator.pk).exists():
        return
    # Anyone who signed in with only the password before must not go on as if the factor had been asked for.
    end_sessions(user, but=request.session.session_key)
    LoginToken.objects.filter(user=user).delete()
    if is_operator(user) and not second_factors(user).exclude(pk=authenticator.pk).exists():
        revoke_all_tokens(user, source)


@receiver(mfa_signals.authenticator_reset)
def _factor_reset(request: HttpRequest, user: User, authenticator: Authenticator, **_: Any) -> None:
    record(user, Kind.FACTOR_ADDED, source_of(request), Message("event_factor_again", factor=_factor(authenticator)))


@receiver(mfa_signals.authenticator_removed)
def _factor_removed(request: HttpRequest, user: User, authenticator: Authenticator, **_: Any) -> None:
    record(user, Kind.FACTOR_REMOVED, source_of(request), _factor(authenticator))


@receiver(mfa_signals.authentication_failed)
def _factor_failed(request: HttpRequest, user: User, **_: Any) -> None:
    record(user, Kind.FACTOR_FAILED, source_of(request))


_FACTORS: Final = {
    Authenticator.Type.TOTP: "factor_totp",
    Authenticator.Type.RECOVERY_CODES: "factor_recovery_codes",
    Authenticator.Type.WEBAUTHN: "factor_webauthn",
}


def _factor(authenticator: Authenticator) -> Message:
    return Message(_FACTORS[Authenticator.Type(authenticator.type)])
