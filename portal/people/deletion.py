"""Deletion of an account: requested, cancelled by logging in within the grace period, due after it.

accounting/account_data/erasure.py then erases it.
"""

from __future__ import annotations

import datetime as dt
from typing import Final

from django.contrib.admin.models import LogEntry
from django.db.models import QuerySet
from django.utils import timezone

from portal.models import User
from portal.sign_in.sessions import end_sessions

GRACE: Final = dt.timedelta(days=14)


class OperatorCannotLeave(Exception):
    """An operator cannot close their own account; another operator does it, in the admin."""


def ask_deletion(user: User) -> dt.datetime:
    """Schedule the account's erasure after the grace period, log it out everywhere, and return when it is due.

    Asking again does not prolong it. Raises OperatorCannotLeave.
    """
    if user.is_staff or user.is_superuser:
        raise OperatorCannotLeave
    User.objects.filter(pk=user.pk, deletion_asked_at=None).update(deletion_asked_at=timezone.now())
    user.refresh_from_db(fields=["deletion_asked_at"])
    end_sessions(user)
    assert user.deletion_asked_at is not None
    return user.deletion_asked_at + GRACE


def forget_in_log(user_id: int) -> None:
    """Remove the account's name, and why it was looked at, from the admin's log. Safe to repeat."""
    about = LogEntry.objects.filter(content_type__app_label="portal", content_type__model__in=["account", "user"])
    about.filter(object_id=str(user_id)).update(object_repr="an erased account", change_message="")


def cancel_deletion(user: User) -> bool:
    """Cancel a requested deletion; return whether there was one."""
    return User.objects.filter(pk=user.pk).exclude(deletion_asked_at=None).update(deletion_asked_at=None) == 1


def due_for_erasure(now: dt.datetime) -> QuerySet[User]:
    """The users whose grace period is over."""
    return User.objects.filter(deletion_asked_at__lte=now - GRACE)
