"""Browsers of Django's test client that are signed in without the form."""

from __future__ import annotations

import time

from allauth.account.models import EmailAddress
from django.test import Client

from portal.models import User


def sign_in_lately(client: Client, user: User) -> None:
    """As after a login a moment ago: the site does not ask for the password again."""
    client.force_login(user)
    session = client.session
    session["account_authentication_methods"] = [{"method": "password", "at": time.time()}]
    session["account_authentication_methods_user"] = str(user.pk)
    session.save()


def confirm_address(user: User) -> None:
    """The user has opened the link in the mail about their address."""
    EmailAddress.objects.create(user=user, email=user.email, verified=True, primary=True)
