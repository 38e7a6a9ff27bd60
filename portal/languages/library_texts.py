"""Texts of libraries, on the admin's pages, that have no German translation of their own.

They are only marked here, so that they get into the portal's catalogue, which takes precedence over the libraries'.
"""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext_noop as _

TEXTS: Final = (
    # django-unfold
    _("After you've created a user, you’ll be able to edit more user options."),
    _("Choose file to upload"),
    _("Dark"),
    _("Go back"),
    _("Light"),
    _("No results found"),
    _(
        "Raw passwords are not stored, so there is no way to see this user’s password, but you can change the password "
        'using <a href="{}" class="text-primary-600 dark:text-primary-500">this form</a>.'
    ),
    _("Reset filters"),
    _("Run"),
    _("Search apps and models..."),
    _("Select action"),
    _("Select action to run"),
    _("Select all rows"),
    _("Select record"),
    _("Select value"),
    _("System"),
    _("This page yielded into no results. Create a new item or reset your filters."),
    _("Type to search"),
    # Django
    _("Date"),
    _("False"),
    _("True"),
    _("Disabled"),
    _("Enabled"),
    _("Password-based authentication"),
    _("Save"),
    _("Save and add another"),
    _("Save and continue editing"),
    _("Save and view"),
    _("Save as new"),
    _(
        "Whether the user will be able to authenticate using a password or not. If disabled, they may still be able to "
        "authenticate using other backends, such as Single Sign-On or LDAP."
    ),
    # django-auditlog
    _("timestamp"),
)
