"""django-allauth's forms with this site's words: labels as elsewhere, no placeholder that only repeats the label."""

from __future__ import annotations

from typing import Any, Final

from allauth.account import forms as allauth_forms

_LABELS: Final = {
    "Email": "E-mail address",
    "Current Password": "Present password",
    "New Password": "New password",
    "New Password (again)": "New password, once more",
    "Password (again)": "Password, once more",
}


class HouseWords:
    """Comes before a form of allauth's."""

    fields: dict[str, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            label = str(field.label)
            field.label = _LABELS.get(label, label)
            field.widget.attrs.pop("placeholder", None)


class LoginForm(HouseWords, allauth_forms.LoginForm):
    """Sign in."""


class ResetPasswordForm(HouseWords, allauth_forms.ResetPasswordForm):
    """Ask for a mail with a link to set a new password."""


class ResetPasswordKeyForm(HouseWords, allauth_forms.ResetPasswordKeyForm):
    """Set a new password with the link."""


class ChangePasswordForm(HouseWords, allauth_forms.ChangePasswordForm):
    """Change the password."""


class SetPasswordForm(HouseWords, allauth_forms.SetPasswordForm):
    """Set a password for an account that has none."""


class ReauthenticateForm(HouseWords, allauth_forms.ReauthenticateForm):
    """The password once more."""
