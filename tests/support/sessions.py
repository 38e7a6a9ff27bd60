"""Browsers of Django's test client that are signed in without the form."""

from __future__ import annotations

import time
from typing import Any

from allauth.account.models import EmailAddress
from django.test import Client, TestCase

from portal.models import User


class CommittingClient(Client):
    """In a test that commits nothing: what is to follow the commit of a request follows each request."""

    def request(self, **request: Any) -> Any:
        with TestCase.captureOnCommitCallbacks(execute=True):
            return super().request(**request)


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
