"""Operators sign in with a second factor, where the setting demands it."""

from __future__ import annotations

from allauth.mfa.models import Authenticator
from django.conf import settings

from portal.models import User

_FACTORS = (Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN)


def lacks_second_factor(user: User) -> bool:
    """Whether this is an operator who has to set up a second factor first. Who has one was asked for it."""
    if not settings.STAFF_SECOND_FACTOR or not (user.is_staff or user.is_superuser):
        return False
    return not Authenticator.objects.filter(user=user, type__in=_FACTORS).exists()
