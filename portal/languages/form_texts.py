"""Texts from libraries that volunteers read on forms, reworded for this site: in Spanish, libraries say “usted”.

They are only marked here, so that they get into the portal's catalogue, which takes precedence over the libraries'.
"""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext_noop as _
from django.utils.translation import ngettext_lazy

TEXTS: Final = (
    # Django
    _("Enter a number."),
    _("Enter a valid URL."),
    _("Enter a valid date."),
    _("Enter a valid email address."),
    _("Enter a valid value."),
    _("Enter a whole number."),
    ngettext_lazy(
        "Ensure this value has at least %(limit_value)d character (it has %(show_value)d).",
        "Ensure this value has at least %(limit_value)d characters (it has %(show_value)d).",
        "limit_value",
    ),
    ngettext_lazy(
        "Ensure this value has at most %(limit_value)d character (it has %(show_value)d).",
        "Ensure this value has at most %(limit_value)d characters (it has %(show_value)d).",
        "limit_value",
    ),
    _("Ensure this value is greater than or equal to %(limit_value)s."),
    _("Ensure this value is less than or equal to %(limit_value)s."),
    _("Select a valid choice. %(value)s is not one of the available choices."),
    _("Select a valid choice. That choice is not one of the available choices."),
    _("Your password can’t be a commonly used password."),
    _("Your password can’t be entirely numeric."),
    _("Your password can’t be too similar to your other personal information."),
    ngettext_lazy(
        "Your password must contain at least %(min_length)d character.",
        "Your password must contain at least %(min_length)d characters.",
        "min_length",
    ),
    # allauth
    _("Forgot your password?"),
    _("Please type your current password."),
    _("The email address and/or password you specified are not correct."),
    _("The username and/or password you specified are not correct."),
)
