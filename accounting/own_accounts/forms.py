"""Forms of an account at a project: its login, the details of a new one, or its key."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from accounting.own_accounts.requests import AccountRequest
from accounting.project_setup.forms import clean_key
from accounting.wire.project_config import ProjectConfig
from portal.wire.credentials import client_password_hash

_PASSWORD_HELP = _(
    "It is not stored. The site sends what BOINC sends for a password, a hash of it, once, and forgets it within ten "
    "minutes."
)


class LoginForm(forms.Form):
    """The login of an existing account."""

    login = forms.CharField(
        label=_("E-mail address of the account"),
        max_length=254,
        widget=forms.TextInput(attrs={"autocomplete": "off", "inputmode": "email"}),
    )
    password = forms.CharField(
        label=_("Password of the account"),
        max_length=255,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text=_PASSWORD_HELP,
    )

    def __init__(self, config: ProjectConfig, data: Any = None, **initial: str) -> None:
        self.config = config
        super().__init__(data, initial=initial, auto_id=f"{type(self).__name__.lower()}_%s")
        if config.uses_username:
            self.fields["login"].label = _("User name of the account")

    def request(self) -> AccountRequest:
        """Return the request of a valid form."""
        login = str(self.cleaned_data["login"]).strip().lower()
        return AccountRequest(
            login=login,
            passwd_hash=client_password_hash(self.cleaned_data["password"], login),
            name=self.cleaned_data.get("name", ""),
            has_consented=self.cleaned_data.get("consent", False),
        )


class NewAccountForm(LoginForm):
    """The login of a new account."""

    name = forms.CharField(label=_("Name that the project shows"), max_length=100)
    consent = forms.BooleanField(label=_("I have read the project’s terms of use and accept them"))
    field_order = ("login", "name", "password", "consent")

    def __init__(self, config: ProjectConfig, data: Any = None, **initial: str) -> None:
        super().__init__(config, data, **initial)
        if not config.terms_of_use:
            del self.fields["consent"]

    def clean_password(self) -> str:
        password = str(self.cleaned_data["password"])
        if len(password) < self.config.min_passwd_length:
            raise ValidationError(
                gettext("The project wants at least %(number)s characters.") % {"number": self.config.min_passwd_length}
            )
        return password


class AccountKeyForm(forms.Form):
    """The key of an existing account."""

    account_key = forms.CharField(
        label=_("Account key"),
        max_length=255,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text=_(
            "Preferably the weak one, with an underscore: with it, computers can work, but nobody can change the "
            "account. It is stored encrypted and never shown."
        ),
    )

    def clean_account_key(self) -> str:
        return clean_key(str(self.cleaned_data["account_key"]))

    def request(self) -> AccountRequest:
        """Return the request of a valid form."""
        return AccountRequest(key=self.cleaned_data["account_key"])
