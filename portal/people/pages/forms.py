"""django-allauth's forms with this site's labels and, at sign-up and change of address, its additions.

`settings.ACCOUNT_FORMS` names them.
"""

from __future__ import annotations

from typing import Any, Final

from allauth.account import forms as allauth_forms
from allauth.account.adapter import get_adapter
from allauth.account.fields import PasswordField
from allauth.account.internal.flows.email_verification import send_verification_email_to_address
from allauth.account.models import EmailAddress
from allauth.core import context
from django import forms
from django.conf import settings
from django.db import transaction
from django.http import HttpRequest
from django.utils import timezone, translation
from django.utils.html import linebreaks
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from portal.models import CLIENT_PASSWORD_FIELDS, MAX_NAME_CHARS, User
from portal.people.accounts import MAX_EMAIL_CHARS, find, lock_unchanged
from portal.people.name_field import NameField
from portal.people.recovery import reset_password, revoke_access
from portal.people.security_events import source_of
from portal.wire.names import MAX_LOGIN_NAME_CHARS, folded, is_login_name

_LABELS: Final = {
    "Email": _("E-mail address"),
    "Password": _("Password"),
    "Current Password": _("Current password"),
    "New Password": _("New password"),
    "New Password (again)": _("New password again"),
    "Password (again)": _("Password again"),
    "Remember Me": _("Keep me signed in"),
}


class SiteLabels:
    """A mixin for allauth's forms that changes their labels and drops placeholders that repeat them."""

    fields: dict[str, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            with translation.override(settings.LANGUAGE_CODE):
                label = str(field.label)
            field.label = _LABELS.get(label, field.label)
            field.widget.attrs.pop("placeholder", None)


class LoginForm(SiteLabels, allauth_forms.LoginForm):
    """Sign in by e-mail address or, if the site has them, by user name."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if settings.LOGIN_BY_USER_NAME:
            self.fields["login"] = forms.CharField(
                label=_("E-mail address or user name"),
                max_length=MAX_EMAIL_CHARS,
                widget=forms.TextInput(attrs={"autocomplete": "username", "autocapitalize": "none"}),
            )

    def clean_login(self) -> str:
        """Return the account's e-mail address, which the rest works with; what was typed if there is no account."""
        login = str(self.cleaned_data["login"]).strip()
        user = find(login) if settings.LOGIN_BY_USER_NAME else None
        return user.email if user is not None else login


class LoginNameForm(forms.Form):
    """Choose a user name to log in with. It needs the password, as clients derive another value from both."""

    name = forms.CharField(
        label=_("User name"),
        max_length=MAX_LOGIN_NAME_CHARS,
        required=False,
        help_text=_(
            "2 to 40 letters from A to Z and digits, with single spaces, dots, hyphens or underscores in between. "
            "Leave it empty to log in with your e-mail address only."
        ),
    )
    password = PasswordField(
        label=_("Password"),
        autocomplete="current-password",
        help_text=_("Your current password: without it, BOINC could not log in with the new name."),
    )

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        self.user = user
        super().__init__(*args, **kwargs)
        self.initial["name"] = user.login_name

    def clean_name(self) -> str:
        name = str(self.cleaned_data["name"]).strip()
        if name and not is_login_name(name):
            raise forms.ValidationError(gettext("This cannot be a user name. Use letters from A to Z and digits."))
        if name and User.objects.filter(login_name_key=folded(name)).exclude(pk=self.user.pk).exists():
            raise forms.ValidationError(gettext("Somebody has this user name, or one that looks like it."))
        return name

    def clean_password(self) -> str:
        password = str(self.cleaned_data["password"])
        if not self.user.check_password(password):
            raise forms.ValidationError(gettext("The password is wrong."))
        return password

    def save(self) -> None:
        """Store the name. Raises PasswordChanged, and IntegrityError if somebody else was faster."""
        with transaction.atomic():
            lock_unchanged(self.user)
            self.user.choose_login_name(self.cleaned_data["name"], self.cleaned_data["password"])
            self.user.save(update_fields=["login_name", "login_name_key", "login_name_password"])


class ResetPasswordForm(SiteLabels, allauth_forms.ResetPasswordForm):
    """Ask for a mail with a link to set a new password.

    It is sent to the login only: another address that somebody typed, and has not confirmed, proves nothing about whose
    account this is.
    """

    users: list[User]

    def clean_email(self) -> str:
        email = str(super().clean_email())
        self.users = list(User.objects.filter(email=email.lower(), is_active=True))
        return email


class ResetPasswordKeyForm(SiteLabels, allauth_forms.ResetPasswordKeyForm):
    """Set a new password with the link, which ends all other access (portal/people/recovery.py)."""

    user: User

    def save(self) -> None:
        request = context.request
        reset_password(
            self.user,
            self.cleaned_data["password1"],
            source_of(request),
            session_key=request.session.session_key if request is not None else None,
        )


class ChangePasswordForm(SiteLabels, allauth_forms.ChangePasswordForm):
    """Change the password and, unless the person unchecks it, revoke what gave access with the old one."""

    user: User
    revoke = forms.BooleanField(
        label=_("Revoke all client keys and API tokens"),
        required=False,
        initial=True,
        help_text=_(
            "Anybody who knew the old password could have created some. You then have to attach each of your computers "
            "again, and a change of your e-mail address that is not yet confirmed is cancelled. Uncheck the "
            "box if nobody else knew it."
        ),
    )

    def save(self) -> None:
        with transaction.atomic():
            lock_unchanged(self.user)
            super().save()
            if self.cleaned_data["revoke"]:
                revoke_access(self.user, source_of(context.request))


class SetPasswordForm(SiteLabels, allauth_forms.SetPasswordForm):
    """Set a password for an account that has none."""


class ReauthenticateForm(SiteLabels, allauth_forms.ReauthenticateForm):
    """Ask for the password again before a sensitive change."""


class SignUpForm(SiteLabels, allauth_forms.SignupForm):
    """Ask for e-mail address, password, an optional display name, and consent if the site has terms of use."""

    field_order = ("email", "password1", "name", "terms")
    name = NameField(
        label=_("Display name"),
        required=False,
        max_length=MAX_NAME_CHARS,
        help_text=_("What this site and BOINC call you. Nobody else sees it."),
        widget=forms.TextInput(attrs={"autocomplete": "nickname"}),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if settings.TERMS_OF_USE:
            self.fields["terms"] = forms.BooleanField(
                label=gettext("I agree to the terms of use"),
                help_text=linebreaks(settings.TERMS_OF_USE, autoescape=True),
            )

    def custom_signup(self, request: HttpRequest, user: User) -> None:
        user.name = self.cleaned_data["name"]
        # Mails to somebody who signs up in another language than the site's own are in that language, too.
        language = translation.get_language()
        user.language = language if language in settings.TRANSLATIONS else ""
        user.terms_accepted_at = timezone.now() if settings.TERMS_OF_USE else None
        user.save(update_fields=["name", "language", "terms_accepted_at"])


class ChangeEmailForm(SiteLabels, allauth_forms.AddEmailForm):
    """A new address and the password: BOINC clients log in with a hash of both."""

    user: User
    password = PasswordField(label=_("Your password"), autocomplete="current-password")

    def clean_email(self) -> str:
        email = self.cleaned_data["email"].lower()
        if email == self.user.email:
            raise get_adapter().validation_error("duplicate_email")
        if User.objects.filter(email=email).exists():
            raise get_adapter().validation_error("email_taken")
        # For the same new address, this request replaces the earlier one.
        EmailAddress.objects.filter(user=self.user, email=email).delete()
        return str(super().clean_email())

    def clean_password(self) -> str:
        password: str = self.cleaned_data["password"]
        if not get_adapter().reauthenticate(self.user, password):
            raise get_adapter().validation_error("incorrect_password")
        return password

    def save(self, request: HttpRequest) -> EmailAddress:
        """Store the request, with the clients' value for it, and send a confirmation to the new address."""
        with transaction.atomic():
            # No stronger lock: hashing a new password takes a while, and rows that refer to the account need not wait.
            lock_unchanged(self.user)
            user = User.objects.get(pk=self.user.pk)
            user.expect_email(self.cleaned_data["password"], self.cleaned_data["email"])
            user.awaited_email_at = timezone.now()
            user.save(update_fields=["awaited_email_at", *CLIENT_PASSWORD_FIELDS])
            EmailAddress.objects.filter(user=user, verified=False).exclude(email=user.email).delete()
            awaited = EmailAddress.objects.create(user=user, email=self.cleaned_data["email"])
        send_verification_email_to_address(request, awaited)
        return awaited
