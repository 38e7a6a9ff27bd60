"""Operators sign in with a second factor, if the setting demands it.

A mailbox alone must not be enough while an operator has none yet: anyone who reads the mails could set a new password,
and then a factor of their own. After such a reset somebody else has to restore the operator's rights.
"""

from __future__ import annotations

from allauth.mfa.models import Authenticator
from django.conf import settings
from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _

from portal.languages.messages import Message
from portal.models import User
from portal.people.change_mails import tell_of_rights
from portal.people.security_events import Kind, Source, record

_FACTORS = (Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN)


def is_operator(user: User) -> bool:
    """Whether this person is one of the staff or a superuser."""
    return user.is_staff or user.is_superuser


def second_factors(user: User) -> QuerySet[Authenticator]:
    """The factors that the login asks for after the password. Recovery codes alone do not count."""
    factors: QuerySet[Authenticator] = Authenticator.objects.filter(user=user, type__in=_FACTORS)
    return factors


def lacks_second_factor(user: User) -> bool:
    """Whether this is an operator who first has to set up a second factor. One who has it was asked for it."""
    return bool(settings.STAFF_SECOND_FACTOR) and is_operator(user) and not second_factors(user).exists()


def are_rights_held(user: User) -> bool:
    """Whether this operator reset their password by mail without a second factor, and the rights are still withheld."""
    return bool(settings.STAFF_SECOND_FACTOR) and is_operator(user) and user.rights_held_at is not None


def allow_rights(user: User, source: Source) -> None:
    """Restore the rights of an operator, once somebody has made sure that the operator set the new password."""
    user.rights_held_at = None
    user.save(update_fields=["rights_held_at"])
    record(user, Kind.RIGHTS_CHANGED, source, Message("event_rights_allowed"))
    tell_of_rights(user, _("The rights that were withheld after a reset of the password were restored."), source)
