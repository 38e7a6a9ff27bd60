"""Web login for accounts opened by a BOINC client: the site has the hash that clients send, but no password yet."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.hashers import make_password
from django.http import HttpRequest

from portal.models import CLIENT_PASSWORD_FIELDS, User
from portal.people.accounts import check_client_password
from portal.wire.credentials import client_password_hash


class ClientPasswordBackend(ModelBackend):
    """Checks the password against the hash for clients and, if it is right, makes it the web password.

    Only for accounts without a usable web password; others are left to the backend before this one.
    """

    def authenticate(
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
        email: str | None = None,
        **kwargs: Any,
    ) -> User | None:
        if not password:
            return None
        user = User.objects.filter(email=(email or username or "").strip().lower()).first()
        if user is None or user.has_usable_password() or not self.user_can_authenticate(user):
            user = None
        if user is None or not user.current_client_password:
            # Takes as long as a wrong password, so the time does not reveal whether there is such an account.
            make_password(password)
            return None
        sent = client_password_hash(password, user.email)
        if not check_client_password(sent, user.current_client_password):
            return None
        user.set_password(password)
        user.save(update_fields=["password", *CLIENT_PASSWORD_FIELDS])
        return user
