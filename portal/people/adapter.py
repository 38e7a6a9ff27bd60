"""This site's rules for django-allauth: who may sign up, and what happens when an address or password changes."""

from __future__ import annotations

import time
from smtplib import SMTPException
from typing import Any

import structlog
from allauth.account import app_settings
from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.internal.flows.login import get_authentication_records
from allauth.account.models import EmailAddress
from allauth.core import context
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.models import Authenticator
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.base_user import AbstractBaseUser
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.utils.text import format_lazy
from django.utils.translation import get_language, gettext_lazy
from django.utils.translation import gettext as _

from portal.languages.recipients import written_for
from portal.models import User
from portal.people.accounts import refresh_client_password
from portal.people.change_mails import tell_of_change
from portal.people.security_events import source_of
from portal.sign_in import known_devices
from portal.wire import sealing

log = structlog.get_logger("accounts")
# allauth does not say whose secret it is, so it is bound to its purpose only.
_PLACE = ("authenticator", "data")


class AccountAdapter(DefaultAccountAdapter):
    """The site's account rules."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return bool(settings.SIGNUP_OPEN)

    def authenticate(self, request: HttpRequest, **credentials: Any) -> AbstractBaseUser | None:
        """Log in, and use the password in clear to update a stale value for BOINC clients."""
        user: AbstractBaseUser | None = super().authenticate(request, **credentials)
        if isinstance(user, User) and user.is_active and credentials.get("password"):
            refresh_client_password(user, credentials["password"])
        return user

    def _get_login_attempts_cache_key(self, request: HttpRequest, **credentials: Any) -> str:
        """Count failures of known browsers and addresses separately, so that no stranger locks the owner out."""
        login = str(credentials.get("email") or "").strip().lower()
        user = User.objects.filter(email=login).first() if "\0" not in login else None
        key = super()._get_login_attempts_cache_key(request, **credentials)
        return f"{key} {known_devices.of_browser(user, request)}"

    def post_login(self, request: HttpRequest, user: User, **more: Any) -> HttpResponse:
        response: HttpResponse = super().post_login(request, user, **more)
        known_devices.remember_browser(request, response, user)
        return response

    def is_reauthentication_required(self, *, app: str, **more: Any) -> bool:
        """Whether to ask for the password again: not if this browser signed in a few minutes ago."""
        return super().is_reauthentication_required(app=app, **more) and not _signed_in_lately(context.request)

    def can_delete_email(self, email_address: EmailAddress) -> bool:
        """Never delete the address that is the login: allauth would replace it by an unconfirmed one."""
        is_login = User.objects.filter(pk=email_address.user_id, email=email_address.email).exists()
        return not is_login and super().can_delete_email(email_address)

    def confirm_email(self, request: HttpRequest, email_address: EmailAddress) -> bool:
        """Confirm an address, unless somebody else opened an account with it in the meantime."""
        before = User.objects.get(pk=email_address.user_id).email
        is_told = EmailAddress.objects.filter(user_id=email_address.user_id, email=before).exists()
        try:
            with transaction.atomic():
                is_confirmed = bool(super().confirm_email(request, email_address))
                if is_confirmed and email_address.user.email != before:
                    # The library writes to the old address, unless it was never one of its own.
                    words = {"before": before, "after": email_address.user.email}
                    what = format_lazy(
                        gettext_lazy("The e-mail address was changed from {before} to {after}."), **words
                    )
                    tell_of_change(email_address.user, what, source_of(request), *([] if is_told else [before]))
                return is_confirmed
        except IntegrityError:
            self.add_message(
                request,
                messages.ERROR,
                "account/messages/email_confirmation_failed.txt",
                {"email": email_address.email},
            )
            return False

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """Send a mail in its reader's language; if that fails, say so on the page: an account works without its mails.

        A reader who has chosen no language is usually the visitor of the page, and gets the page's.
        """
        words = {"site_name": settings.SITE_NAME, "site_url": settings.SITE_URL, **context}
        reader = context.get("user") or User.objects.filter(email=email.lower()).first() or User()
        try:
            with written_for(reader, get_language() or settings.LANGUAGE_CODE):
                super().send_mail(template_prefix, email, words)
        except (OSError, SMTPException) as error:
            log.error("mail_failed", kind=template_prefix, reason=type(error).__name__)
            self.add_message(
                self.request,
                messages.ERROR,
                message=_("The e-mail could not be sent. Your account works. Please try again later."),
            )


def _signed_in_lately(request: HttpRequest) -> bool:
    """Whether the last step of the login is recent enough to skip asking for the password."""
    steps = get_authentication_records(request, request.user)
    return bool(steps) and time.time() - steps[-1]["at"] < app_settings.REAUTHENTICATION_TIMEOUT


class TwoFactorAdapter(DefaultMFAAdapter):
    """Stores the secrets of two-factor login encrypted, so that a stolen database gives no codes."""

    def _get_site_name(self) -> str:
        return str(settings.SITE_NAME)

    def generate_authenticator_name(self, user: User, type: Authenticator.Type) -> str:
        number = Authenticator.objects.filter(user=user, type=type).count()
        return _("Passkey %(number)s") % {"number": number + 1}

    def encrypt(self, text: str) -> str:
        return sealing.seal(settings.ACCOUNT_KEY_SECRET, _PLACE, text).decode()

    def decrypt(self, encrypted_text: str) -> str:
        return sealing.unseal(settings.ACCOUNT_KEY_SECRET, _PLACE, encrypted_text.encode())
