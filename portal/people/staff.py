"""Operators sign in with a second factor, where the setting demands it."""

from __future__ import annotations

from allauth.mfa.models import Authenticator
from django.conf import settings
from django.db.models import QuerySet

from portal.models import User

_FACTORS = (Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN)


def is_operator(user: User) -> bool:
    """Whether this person is one of the staff or a superuser."""
    return user.is_staff or user.is_superuser


def second_factors(user: User) -> QuerySet[Authenticator]:
    """What the login asks for after the password. Recovery codes alone are none."""
    factors: QuerySet[Authenticator] = Authenticator.objects.filter(user=user, type__in=_FACTORS)
    return factors


def lacks_second_factor(user: User) -> bool:
    """Whether this is an operator who has to set up a second factor first. Who has one was asked for it."""
    return bool(settings.STAFF_SECOND_FACTOR) and is_operator(user) and not second_factors(user).exists()
